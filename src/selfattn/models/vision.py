"""The vision transformer: an encoder whose tokens are patches of an image."""

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from selfattn.entering import check_enters
from selfattn.mismatches import check_filled
from selfattn.models.encoder import Encoder
from selfattn.positions import LearnedPositions
from selfattn.signatures import Positive, Share, checked
from selfattn.spoilt import projected

Images = Float[Tensor, "batch channels height width"]


class PatchEmbedding(nn.Module):
    """Cut an image into patches, and make a vector of each.

    All numbers of a patch go through one matrix. In front stands a token of
    its own, [CLS], that belongs to no patch; each has a learned position.

    Args:
        image_size: height and width of the images.
        patch_size: height and width of a patch; must divide those.
        n_channels: numbers a pixel, such as 3 for colours.
        d_model: width of the vectors.
        dropout: share of the features dropped in training.

    Raises:
        ValueError: if the patches do not cover the image exactly.

    Reference: Dosovitskiy et al. (2021), section 3.1, equation 1.

    >>> embed = PatchEmbedding((6, 8), (3, 2), n_channels=1, d_model=5)
    >>> embed(torch.zeros(2, 1, 6, 8)).shape  # 2 × 4 patches and [CLS]
    torch.Size([2, 9, 5])
    """

    @checked
    def __init__(
        self,
        image_size: tuple[int, int],
        patch_size: tuple[int, int],
        *,
        n_channels: Positive,
        d_model: Positive,
        dropout: Share = 0.0,
    ):
        """Make the matrix, the token in front, and the positions."""
        super().__init__()
        (height, width), (tall, wide) = image_size, patch_size
        least = min(height, width, tall, wide)
        if least < 1 or height % tall or width % wide:
            raise ValueError(
                "patches must be at least 1 by 1 and cover an image exactly, "
                f"but images are {image_size} and patches {patch_size}"
            )
        n_patches = (height // tall) * (width // wide)
        self.shape = n_channels, height, width
        self.patch_size = tall, wide
        self.project = nn.Linear(n_channels * tall * wide, d_model)
        self.first = nn.Parameter(0.02 * torch.randn(d_model))
        self.positions = LearnedPositions(n_patches + 1, d_model)
        self.dropout = nn.Dropout(dropout)

    @checked
    def forward(self, images: Images) -> Float[Tensor, "batch n d_model"]:
        """From images to tokens, patches row by row behind [CLS].

        Raises:
            ValueError: if the images are of another size.
        """
        if images.shape[1:] != self.shape:
            raise ValueError(
                f"images must be (batch, channels, height, width) = (batch, "
                f"{', '.join(map(str, self.shape))}), but they are "
                f"{tuple(images.shape)}"
            )
        patches = F.unfold(images, self.patch_size, stride=self.patch_size)
        name = "images, cut into patches,"
        check_enters(name, patches.mT, self.project)
        check_filled(self, images)
        x = projected(self.project, patches.mT)  # (batch, n_patches, d_model)
        first = self.first.expand(x.shape[0], 1, -1)
        x = torch.cat((first, x), dim=1)
        return self.dropout(x + self.positions(x.shape[1]))


class VisionTransformer(nn.Module):
    """Patches, an encoder, and a class from the token in front.

    Args:
        embed: the `PatchEmbedding`.
        blocks: `EncoderBlock`s of the same width, with ``pre=True``.
        n_classes: number of classes.
        norm: after the last block; none when None.

    Reference: Dosovitskiy et al. (2021), section 3.1.

    >>> from selfattn.blocks import EncoderBlock
    >>> embed = PatchEmbedding((8, 8), (2, 2), n_channels=1, d_model=12)
    >>> blocks = [EncoderBlock(12, 3, 24, pre=True) for _ in range(2)]
    >>> VisionTransformer(embed, blocks, 10)(torch.zeros(5, 1, 8, 8)).shape
    torch.Size([5, 10])
    """

    @checked
    def __init__(
        self,
        embed: PatchEmbedding,
        blocks: Iterable[nn.Module],
        n_classes: Positive,
        *,
        norm: nn.Module | None = None,
    ):
        """Make the encoder of the parts, and the scores of the classes."""
        super().__init__()
        self.encoder = Encoder(embed, blocks, norm=norm)
        self.head = nn.Linear(embed.project.out_features, n_classes)

    @checked
    def forward(self, images: Images) -> Float[Tensor, "batch n_classes"]:
        """Logits of the classes, (batch, n_classes)."""
        return projected(self.head, self.encoder(images)[:, 0])
