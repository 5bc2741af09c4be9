"""The choice of those that give quota back, by the rules of Kueue and of scheduler-plugins; no pods, no nodes."""
