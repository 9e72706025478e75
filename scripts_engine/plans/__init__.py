"""Manifests, uploaded sources, and plans: how a manifest becomes a release."""
