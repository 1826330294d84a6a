"""Trains the digit classifier of this sample from scikit-learn's digits and exports it to ONNX.

    pip install torch onnx onnxscript scikit-learn
    python train_digits.py --out ../models/digits.onnx

A minute on one core. The network: three 3x3 convolutions with batch normalisation and ReLU, global average pool, one
linear layer; input [1, 1, 32, 32] in [0, 1], white digit on black, output ten logits. The 8x8 digits are enlarged to
32x32, shifted, scaled and blurred at random, so that the model reads larger drawings too.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

SIZE_PX = 32
TEST_SHARE = 5  # every fifth digit is for testing


class DigitNet(nn.Module):
    """Maps (n, 1, 32, 32) in [0, 1] to (n, 10) logits."""

    def __init__(self, widths: tuple[int, int, int] = (16, 32, 48)) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = 1
        for width in widths:
            layers += [nn.Conv2d(before, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
            before = width
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(before, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Computes the logits."""
        return self.classifier(self.features(x).mean(dim=(2, 3)))


def digits() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Loads the digits: training images (n, 1, 8, 8) in [0, 1] and labels, then test images and labels."""
    data = load_digits()
    images = torch.tensor(data.images / 16.0, dtype=torch.float32)[:, None]
    labels = torch.tensor(data.target)
    test = torch.arange(len(labels)) % TEST_SHARE == 0
    return images[~test], labels[~test], images[test], labels[test]


def augment(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Enlarges to 32x32 with random scale, shift, tilt, stroke contrast and noise."""
    n = len(images)
    scale = 1.0 + 0.35 * (torch.rand(n, generator=generator) - 0.2)
    angle = 0.5 * (torch.rand(n, generator=generator) - 0.5)
    shift = 0.3 * (torch.rand(n, 2, generator=generator) - 0.5)
    rows = torch.stack([scale * angle.cos(), -scale * angle.sin(), shift[:, 0]], 1)
    columns = torch.stack([scale * angle.sin(), scale * angle.cos(), shift[:, 1]], 1)
    grid = nn.functional.affine_grid(torch.stack([rows, columns], 1), [n, 1, SIZE_PX, SIZE_PX], align_corners=False)
    moved = nn.functional.grid_sample(images, grid, align_corners=False)
    gain = 1.0 + 1.5 * torch.rand(n, 1, 1, 1, generator=generator)
    noise = 0.08 * torch.randn(moved.shape, generator=generator)
    return (moved * gain + noise).clamp(0, 1)


def plain(images: torch.Tensor) -> torch.Tensor:
    """Enlarges to 32x32 without variation."""
    return nn.functional.interpolate(images, size=(SIZE_PX, SIZE_PX), mode="bilinear", align_corners=False)


def train(steps: int, seed: int) -> tuple[DigitNet, float]:
    """Trains and tests; returns the network and its accuracy on the test digits."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    x, y, x_test, y_test = digits()
    net = DigitNet()
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total_steps=steps)
    for _ in range(steps):
        picked = torch.randint(len(x), (128,), generator=generator)
        loss = nn.functional.cross_entropy(net(augment(x[picked], generator)), y[picked])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    net.eval()
    with torch.no_grad():
        accuracy = float((net(plain(x_test)).argmax(1) == y_test).float().mean())
    return net, accuracy


def main() -> None:
    """Trains, prints the accuracy, writes the ONNX file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    net, accuracy = train(args.steps, args.seed)
    print(f"accuracy on {1797 // TEST_SHARE + 1} test digits: {accuracy:.4f}")
    example = torch.zeros(1, 1, SIZE_PX, SIZE_PX)
    torch.onnx.export(
        net, (example,), str(args.out), input_names=["image"], output_names=["logits"], opset_version=17, dynamo=False
    )
    print(f"{args.out}: {args.out.stat().st_size} bytes, input float32 {np.asarray(example).shape}")


if __name__ == "__main__":
    main()
