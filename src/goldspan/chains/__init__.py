"""Inference on chains of tags, whatever their scores come from: workers' answers or a CRF."""
