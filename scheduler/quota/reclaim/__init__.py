"""Chooses the units that give quota back, by the rules of Kueue and of scheduler-plugins, without pods or nodes."""
