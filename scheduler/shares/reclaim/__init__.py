"""Who gives quota back: the choice of victims by the rules of Kueue and of scheduler-plugins; no pods, no nodes."""
