"""Plotly figures and the colours they share: numpy arrays and strings in, `go.Figure` out.

Knows nothing of models, tensors or the web app, and decides nothing about which numbers to draw.
"""
