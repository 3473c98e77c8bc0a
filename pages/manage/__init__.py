"""Manage: projects, people, items and exports."""
