"""Tidegate turns a shared folder into results."""
