"""The small tasks that the chapters train on: generated and seeded."""
