"""The decision and the binding where extenders have a say: the same steps, with waits in between.

What extenders are asked and what they answer is in `scheduler.extenders`; HTTP is in `scheduler.kube`.
"""
