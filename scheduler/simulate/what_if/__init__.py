"""What-if questions: more pods of a kind, nodes that are drained, removed or added. Nothing is written anywhere."""
