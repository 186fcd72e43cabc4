"""Inputs that several exercises share."""

import torch

FIVE_INPUTS = torch.tensor([-3.0, -1.0, 0.0, 1.0, 3.0])
