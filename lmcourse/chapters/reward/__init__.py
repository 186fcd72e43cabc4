"""Notebook 22, from imitation to reward: masks, the policy gradient, group advantages, a penalty, a wrong checker."""
