"""Extended resources that devices provide."""
