"""Thresholds and gates measured on the store itself."""
