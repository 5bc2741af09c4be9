"""Evidence for checks: `cluster` asks the API server and the running scheduler, `facts` keeps the answers that several
checks need. Answers are read as `objects`, `samples` of metrics, and what a configuration needs (`configured`).
"""
