"""What a preemption asks: Filter's answers with some pods gone."""
