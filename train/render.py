"""Batches of page descriptions to pixels, on whatever device the tensors are: ink, the scanner's dirt, views, targets."""
import math

import numpy as np
import torch
import torch.nn.functional as F

PAD = 127 / 255 * 2 - 1  # of the padded view, normalised


class Atlas:
    """The glyphs of Fonts on the device."""

    def __init__(self, fonts, device):
        m = torch.from_numpy(np.ascontiguousarray(fonts.metrics[..., :2])).reshape(-1, 2)
        self.width, self.height = (m[:, i].contiguous().to(device) for i in (0, 1))
        self.offset = torch.from_numpy(fonts.offset.reshape(-1)).to(device)
        self.ink = torch.from_numpy(fonts.ink).to(device)


def rasterise(atlas, batch, size, n_pixels):
    """Ink 0..1 [pages, height, width]. glyphs [n, 4] and rules [m, 5] begin with their page; n_pixels is their area."""
    width, height = size
    glyphs, rules = batch["glyphs"].long(), batch["rules"].long()
    pages = batch["ids"].shape[0]
    number = glyphs[:, 1]
    page = torch.cat([glyphs[:, 0], rules[:, 0]])
    left, top = (torch.cat([glyphs[:, i + 1], rules[:, i]]) for i in (1, 2))
    w = torch.cat([atlas.width[number].long(), rules[:, 3]])
    h = torch.cat([atlas.height[number].long(), rules[:, 4]])
    source = torch.cat([atlas.offset[number], torch.zeros_like(rules[:, 0])])
    step = torch.cat([torch.ones_like(number), torch.zeros_like(rules[:, 0])])  # a rule repeats one black pixel
    area = w * h
    item = torch.repeat_interleave(torch.arange(len(area), device=area.device), area, output_size=n_pixels)
    local = torch.arange(n_pixels, device=area.device) - (torch.cumsum(area, 0) - area)[item]
    y = torch.div(local, w[item], rounding_mode="floor")
    x = local - y * w[item]
    value = atlas.ink[source[item] + local * step[item]]
    x, y = x + left[item], y + top[item]
    inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    at = torch.where(inside, (page[item] * height + y) * width + x, pages * height * width)
    ink = torch.zeros(pages * height * width + 1, device=area.device)
    ink.index_add_(0, at, value.float())
    ink = ink[:-1].view(pages, height, width).div_(255).clamp_(max=1)
    for p, x0, y0, w0, h0 in batch["inverse_list"]:
        part = ink[p, max(0, y0):max(0, y0 + h0), max(0, x0):max(0, x0 + w0)]
        part.copy_(1 - part)
    return ink


def lay(ink, affine):
    """Pages as they lie on the scanner: affine [pages, 2, 3] maps drawn pixels to seen ones."""
    pages, height, width = ink.shape
    m = affine.double()
    inverse = torch.linalg.inv(m[:, :, :2])
    shift = -(inverse @ m[:, :, 2:])[..., 0]
    size = torch.tensor([width, height], dtype=torch.float64, device=ink.device)
    # normalised coordinate u = (2 p + 1) / size - 1
    a = inverse * size[None, None, :] / size[None, :, None]
    centre = (size - 1) / 2
    b = ((inverse @ centre)[:, :] + shift - centre) * 2 / size
    theta = torch.cat([a, b[..., None]], 2).float()
    grid = F.affine_grid(theta, [pages, 1, height, width], align_corners=False)
    return F.grid_sample(ink[:, None], grid, align_corners=False)[:, 0]


def uniform(pages, low, high, device):
    return torch.rand(pages, 1, 1, device=device) * (high - low) + low


def chance(pages, p, device):
    return (torch.rand(pages, 1, 1, device=device) < p).float()


def dirty(ink, rnd):
    """Ink 0..1 to grey 0..1 as a scanner might see it. rnd decides what a whole batch suffers, torch the amounts."""
    n, height, width = ink.shape
    dev = ink.device
    on = chance(n, .65, dev)
    if rnd.random() < .25:  # a coarser scan
        k = rnd.uniform(.6, .95)
        small = resize(ink, int(width * k), int(height * k))
        ink = resize(small, width, height).clamp_(0, 1)
    soft = F.avg_pool2d(ink[:, None], 3, 1, 1, count_include_pad=False)[:, 0]
    ink = torch.lerp(ink, soft, uniform(n, 0, 1, dev) * chance(n, .4, dev))
    ink = ink.clamp_(1e-4, 1) ** (1 + uniform(n, -.4, .6, dev) * chance(n, .5, dev))
    field = F.interpolate(torch.randn(n, 1, 4, 4, device=dev), size=(height, width), mode="bilinear", align_corners=True)[:, 0]
    paper = 1 - uniform(n, 0, .25, dev) * on + field * (uniform(n, 0, .08, dev) * on * chance(n, .5, dev))
    grey = torch.lerp(paper, uniform(n, 0, .45, dev) * on, ink)
    if rnd.random() < .5:
        grey = grey + torch.randn_like(grey) * (uniform(n, 0, .08, dev) * on)
    if rnd.random() < .1:  # specks
        speck = torch.rand_like(grey)
        grey = torch.where(speck < .0008, torch.rand_like(grey), grey)
    grey = grey.clamp_(0, 1)
    if rnd.random() < .3:
        grey = jpeg(grey, rnd.randint(25, 85))
    return grey


LUMINANCE = torch.tensor([  # the JPEG standard's example table
    16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29, 51, 87, 80, 62,
    18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100,
    103, 99.])


def jpeg(grey, quality):
    """What quantised 8 x 8 cosine blocks leave of a picture."""
    k = torch.arange(8.)
    one = torch.cos((2 * k[None] + 1) * k[:, None] * math.pi / 16) * torch.where(k[:, None] == 0, math.sqrt(1 / 8), .5)
    basis = (one[:, None, :, None] * one[None, :, None, :]).reshape(64, 1, 8, 8).to(grey.device)
    scale = 5000 / quality if quality < 50 else 200 - 2 * quality
    table = (LUMINANCE * scale / 100).clamp(min=1).to(grey.device).view(1, 64, 1, 1) / 255
    n, height, width = grey.shape
    padded = F.pad(grey[:, None] - .5, (0, -width % 8, 0, -height % 8), mode="replicate")
    c = F.conv2d(padded, basis, stride=8)
    c = torch.round(c / table) * table
    return (F.conv_transpose2d(c, basis, stride=8)[:, 0, :height, :width] + .5).clamp_(0, 1)


_matrices = {}


def bicubic_matrix(n_in, n_out, device):
    """Pillow's bicubic as a matrix [n_out, n_in]: the kernel widens when it shrinks a picture."""
    key = (n_in, n_out, device)
    if key not in _matrices:
        if len(_matrices) > 400:
            _matrices.clear()
        scale = n_in / n_out
        widen = max(scale, 1.0)
        x = torch.arange(n_out, dtype=torch.float64, device=device)[:, None]
        k = torch.arange(n_in, dtype=torch.float64, device=device)[None]
        t = ((k + .5 - (x + .5) * scale) / widen).abs()
        w = torch.where(t < 1, (1.5 * t - 2.5) * t * t + 1, torch.where(t < 2, -.5 * (((t - 5) * t + 8) * t - 4), torch.zeros_like(t)))
        _matrices[key] = (w / w.sum(1, keepdim=True)).float()
    return _matrices[key]


def resize(picture, width, height):
    """[..., h, w] float to [..., height, width]; half precision carries the products on a GPU."""
    h, w = picture.shape[-2:]
    half = torch.float16 if picture.is_cuda else torch.float32
    x = picture.to(half)
    if w != width:
        x = x @ bicubic_matrix(w, width, picture.device).to(half).T
    if h != height:
        x = bicubic_matrix(h, height, picture.device).to(half) @ x
    return x.to(picture.dtype)


def fitted(size, side):
    """Size and offset of a page that is fitted into a square and padded."""
    width, height = size
    w, h = (side, max(1, round(height / width * side))) if width >= height else (max(1, round(width / height * side)), side)
    return w, h, round((side - w) / 2), round((side - h) / 2)


def choose_grid(width, height, side=768, least=2, most=6):
    """Columns and rows of tiles for a page, or None when it is small enough for the global view alone."""
    if width <= side and height <= side:
        return None
    best, grid = math.inf, None
    shapes = [(i, j) for i in range(1, most + 1) for j in range(1, most + 1) if least <= i * j <= most]
    for i, j in sorted(shapes, key=lambda s: s[0] * s[1]):
        d = abs(width / height - i / j)
        if d < best or (d == best and width * height > .5 * side * side * i * j):
            best, grid = d, (i, j)
    return grid


def normalise(grey):
    """Eight bits, then -1..1."""
    return torch.round(grey.clamp(0, 1) * 255) / 255 * 2 - 1


def whole_view(grey, side):
    w, h, x, y = fitted((grey.shape[2], grey.shape[1]), side)
    out = torch.full((len(grey), side, side), PAD, device=grey.device)
    out[:, y:y + h, x:x + w] = normalise(resize(grey, w, h))
    return out


def tile_views(grey, grid, side=768):
    """[pages * tiles, side, side], tiles of a page row by row."""
    columns, rows = grid
    x = normalise(resize(grey, columns * side, rows * side))
    return x.view(-1, rows, side, columns, side).permute(0, 1, 3, 2, 4).reshape(-1, side, side)


def character_maps(view, x, y, kind, n_views, side):
    """Which characters lie where: [views, patches, 4] by quarters of a patch, [views, cells, 64] for the 4 x 16 places of a 64 px cell.
    view, x, y, kind: one entry a character, in pixels of its view."""
    g, m = side // 16, side // 64
    inside = (x >= 0) & (x < side) & (y >= 0) & (y < side)
    xi, yi = x.clamp(0, side - 1).long(), y.clamp(0, side - 1).long()
    patch = ((view * g + yi // 16) * g + xi // 16) * 4 + xi % 16 // 4
    cell = ((view * m + yi // 64) * m + xi // 64) * 64 + yi % 64 // 16 * 16 + xi % 64 // 4
    maps = []
    for at, n in ((patch, n_views * g * g * 4), (cell, n_views * m * m * 64)):
        out = torch.zeros(n + 1, dtype=torch.int64, device=x.device)
        out[torch.where(inside, at, n)] = kind.long()
        maps.append(out[:-1])
    return maps[0].view(n_views, g * g, 4), maps[1].view(n_views, m * m, 64)


def whole_characters(chars, size, n_pages, side):
    w, h, x0, y0 = fitted(size, side)
    return character_maps(chars[:, 0].long(), chars[:, 1] * (w / size[0]) + x0, chars[:, 2] * (h / size[1]) + y0, chars[:, 3], n_pages, side)


def tile_characters(chars, size, n_pages, grid, side=768):
    columns, rows = grid
    x, y = chars[:, 1] * (columns * side / size[0]), chars[:, 2] * (rows * side / size[1])
    i, j = (x / side).floor().clamp(0, columns - 1), (y / side).floor().clamp(0, rows - 1)
    view = ((chars[:, 0] * rows + j) * columns + i).long()
    return character_maps(view, x - i * side, y - j * side, chars[:, 3], n_pages * columns * rows, side)
