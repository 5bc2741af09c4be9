"""The decision and what follows it: filter, score, select, diagnose; then reserve, permit, bind."""
