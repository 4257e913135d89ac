"""Inference on chains of tags, whatever their scores come from: annotators' answers or a CRF.

`forward_backward` computes ln Z, marginals and expected steps (scaled, with logarithms, and many
items side by side), `posterior` the posteriors of paths and spans, `decoding` the best paths.
All are kernels compiled by Numba; J is the number of tags, and `step` has the previous tag in rows.
"""
