"""The parts of LoadAware.

provider (metrics_api, prometheus) ──Measurements──► collector ──Measured──► table ──columns──► plugin, strategies
           reads in the background                   history, expiry         by row, with estimates
"""
