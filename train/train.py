"""Training:  python3 train.py --assets DIR --out DIR --time SECONDS [--resume CHECKPOINT] [--from P] [--to P]

Runs for a time, not for a number of steps. Progress goes from --from to --to (0..1) over that time and decides the curriculum (data.py)
and the learning rate, which falls over the last 35 % of the progress. A checkpoint is written every minute, so a run that is cut off loses little:
--resume CHECKPOINT goes on where it was. Checkpoints are weights in bf16: last.pt as they are, average.pt their mean over the last few hundred
steps; the optimiser's momentum builds up again in a few hundred steps.
"""
import argparse
import collections
import json
import os
import queue
import random
import threading
import time

START = time.time()
os.environ.setdefault("OMP_NUM_THREADS", "4")

import torch
import torch.nn.functional as F

import evaluate
import render
import tokenizer as T
from charset import N_CLASSES
from data import Loader
from glyphs import Fonts
from model import PLACES, SIZES, DecoderLayer, EncoderLayer, Mini, SamLayer, exported_parameters
from optim import Optimiser

CHUNK = {768: 96, 1024: 48}  # views that a vision tower takes at a time
STATS = ["lm", "token", "patch", "patch_ok", "cell", "cell_ok", "place", "place_early", "balance", "count"]
HERE = os.path.dirname(os.path.abspath(__file__))


def arguments():
    a = argparse.ArgumentParser()
    a.add_argument("--assets", required=True)
    a.add_argument("--out", required=True)
    a.add_argument("--time", type=float, required=True)
    a.add_argument("--resume", default="")
    a.add_argument("--from", dest="start", type=float, default=None, help="default: where the checkpoint stopped, or 0")
    a.add_argument("--to", dest="end", type=float, default=1.0)
    a.add_argument("--decay", type=float, default=.35, help="share of the progress over which the learning rate falls")
    a.add_argument("--size", default="mini", choices=SIZES)
    a.add_argument("--device", default="cuda")
    a.add_argument("--workers", type=int, default=14)
    a.add_argument("--slots", type=int, default=30)
    a.add_argument("--scale", type=int, default=1, help="divides the pages of a batch")
    a.add_argument("--families", type=int, default=None, help="only the first font families")
    a.add_argument("--lr", type=float, default=4e-3)
    a.add_argument("--adam-lr", type=float, default=2e-3)
    a.add_argument("--accumulate", type=int, default=1)
    a.add_argument("--steps-before-clock", type=int, default=60, help="steps in which kernels are compiled, at the first progress")
    a.add_argument("--every", type=int, default=100, help="steps between two lines of the log")
    a.add_argument("--cache", default="", help="file of compiled kernels, read at the start and written after the first 200 steps")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--evaluate", type=int, default=0, help="pages a set of the evaluation at the end")
    a.add_argument("--profile", action="store_true")
    return a.parse_args()


class Log:
    def __init__(self, path):
        self.file = open(path, "a", buffering=1)

    def __call__(self, *words):
        line = "[%6.1f] " % (time.time() - START) + " ".join(map(str, words))
        print(line, flush=True)
        self.file.write(line + "\n")


# ---- losses

def character_loss(logits, labels):
    """Blank places and printed ones weigh alike whatever their number. -> loss, share of the printed ones that is right"""
    logits = logits.float()
    loss = torch.logsumexp(logits, -1) - logits.gather(-1, labels[..., None])[..., 0]
    printed = (labels > 0).float()
    n = printed.sum().clamp(min=1.)
    right = ((logits.argmax(-1) == labels).float() * printed).sum() / n
    blank = 1 - printed
    return (loss * printed).sum() / n + 2 * (loss * blank).sum() / blank.sum().clamp(min=1.), right


def token_loss(states, weight, labels):
    logits = F.linear(states, weight).float()
    asked = (labels >= 0).float()
    n = asked.sum().clamp(min=1.)
    target = labels.clamp(min=0)
    loss = torch.logsumexp(logits, -1) - logits.gather(-1, target[..., None])[..., 0]
    return (loss * asked).sum() / n, ((logits.argmax(-1) == target).float() * asked).sum() / n


def place_loss(logits, places):
    """places [pages, n, 2] in bins of the whole view, -1 where nothing is printed"""
    logits = logits.float().view(*logits.shape[:-1], 2, PLACES)
    known = (places[..., :1] >= 0).float()
    loss = torch.logsumexp(logits, -1) - logits.gather(-1, places.clamp(min=0)[..., None])[..., 0]
    return (loss * known).sum() / known.sum().clamp(min=1.)


def compile_parts():
    """Layer by layer: a layer is compiled once for all its copies."""
    global character_loss, token_loss, place_loss
    for attribute in ("cache_size_limit", "recompile_limit", "accumulated_recompile_limit"):
        if hasattr(torch._dynamo.config, attribute):
            setattr(torch._dynamo.config, attribute, 256)
    SamLayer.forward = torch.compile(SamLayer.forward, dynamic=False)
    EncoderLayer.forward = torch.compile(EncoderLayer.forward, dynamic=False)
    Mini.compress = torch.compile(Mini.compress, dynamic=False)
    DecoderLayer.forward = torch.compile(DecoderLayer.forward, dynamic=True)
    character_loss = torch.compile(character_loss, dynamic=True)
    token_loss = torch.compile(token_loss, dynamic=True)
    place_loss = torch.compile(place_loss, dynamic=True)


# ---- data on its way

def feed(loader, device, out, stop):
    """Moves slots to the device; runs in a thread."""
    stream = torch.cuda.Stream() if device.type == "cuda" else None
    while not stop.is_set():
        slot = loader.take()
        info, arrays, inverse = loader.slots[slot].arrays()
        tensors = {}
        for k, a in arrays.items():
            t = torch.from_numpy(a)
            if device.type == "cuda":
                with torch.cuda.stream(stream):
                    tensors[k] = t.contiguous().pin_memory().to(device, non_blocking=True)
            else:
                tensors[k] = t.clone()
        if stream:
            stream.synchronize()
        loader.release(slot)
        tensors["inverse_list"] = inverse
        out.put((info, tensors))


def corrupt(ids, labels, vocab, share):
    """Wrong tokens in the input of the decoder, so that it reads rather than guesses what follows."""
    hit = (torch.rand(ids.shape, device=ids.device) < share) & (labels >= 0)
    noise = torch.randint(3, vocab, ids.shape, device=ids.device)
    elsewhere = ids.roll(int(torch.randint(1, 40, (1,))), 1)  # a token that is on the page, somewhere else
    noise = torch.where((torch.rand(ids.shape, device=ids.device) < .5) & (elsewhere > 12), elsewhere, noise)
    return torch.where(hit, noise, ids)


class Views:
    """Pictures and character maps of a batch."""

    def __init__(self, atlas, info, batch, rnd):
        size = info["size"]
        ink = render.rasterise(atlas, batch, size, info["area"])
        if info["skewed"]:
            ink = render.lay(ink, batch["affine"])
        grey = render.dirty(ink, rnd)
        self.tiles = self.whole = None
        pages, chars = info["pages"], batch["chars"]
        self.maps = {}
        if info["kind"] == "small":
            self.tiles = render.whole_view(grey, 768)
            self.maps[768] = render.whole_characters(chars, size, pages, 768)
        else:
            self.whole = render.whole_view(grey, 1024)
            self.maps[1024] = render.whole_characters(chars, size, pages, 1024)
        if info["kind"] == "tiles":
            # Beside tiles the whole view shows the layout, its type is often too small to read: no characters are asked of it.
            self.tiles = render.tile_views(grey, info["grid"])
            self.maps = {768: render.tile_characters(chars, size, pages, info["grid"])}


class Trainer:
    def __init__(self, args, model, atlas, device):
        self.args, self.model, self.atlas, self.device = args, model, atlas, device
        self.rnd = random.Random(args.seed)

    def look(self, pictures, maps, side):
        """Query outputs of all views, and the losses of the character heads on one chunk of them."""
        m, n = self.model, max(1, CHUNK[side] // self.args.scale)
        outputs, losses = [], None
        chosen = self.rnd.randrange((len(pictures) + n - 1) // n)
        for i in range(0, len(pictures), n):
            patches, out = m.view(pictures[i:i + n].to(torch.bfloat16 if self.device.type == "cuda" else torch.float32))
            outputs.append(out)
            if maps and i // n == chosen:
                k = len(out) if self.early else (len(out) + 1) // 2
                first = self.rnd.randrange(len(out) - k + 1)
                part = slice(first, first + k)
                p = character_loss(m.patch_head(patches[part]).view(k, -1, N_CLASSES), maps[0][i:i + n][part].reshape(k, -1))
                c = character_loss(m.cell_head(out[part]).view(k, -1, N_CLASSES), maps[1][i:i + n][part].reshape(k, -1))
                losses = (*p, *c)
        return torch.cat(outputs), losses

    def forward_backward(self, info, batch, progress, share):
        """share: weight of this batch among those of the step. -> stats"""
        with torch.no_grad():
            views = Views(self.atlas, info, batch, self.rnd)
            ids, labels = batch["ids"].long(), batch["labels"].long()
            wrong = corrupt(ids, labels, self.model.config["vocab"], .06)
            text = torch.cat([torch.zeros_like(wrong[:, :1]), wrong], 1)  # BOS is 0
            places = torch.floor(batch["places"].float()).long()
        m = self.model
        self.early = progress < .15
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            tiles, tile_losses = self.look(views.tiles, views.maps.get(768), 768) if views.tiles is not None else (None, None)
            whole, whole_losses = self.look(views.whole, views.maps.get(1024), 1024) if views.whole is not None else (None, None)
            image = m.page_tokens(tiles) if whole is None else m.page_tokens(whole, tiles)
            states, early, balance = m.decode(image, text)
            lm, token_ok = token_loss(states[:, :-1], m.lm_head.weight, labels)
            place = place_loss(m.place_late(states[:, :-1]), places)
            early = early[:, :-1]
            early = early * torch.rsqrt(early.float().pow(2).mean(-1, keepdim=True) + 1e-6).to(early.dtype)
            place_early = place_loss(m.place_early(early), places)
        parts = [l for l in (tile_losses, whole_losses) if l is not None]
        patch, patch_ok, cell, cell_ok = (sum(p[i] for p in parts) / len(parts) for i in range(4))
        loss = (lm + .5 * (1 - .8 * progress) * patch + .5 * (1 - .6 * progress) * cell
                + .2 * (1 - .5 * progress) * (place + place_early) + .01 * balance)
        (loss * share).backward()
        return torch.stack([v.detach().float() for v in (lm, token_ok, patch, patch_ok, cell, cell_ok, place, place_early, balance,
                                                         torch.ones((), device=self.device))])


class Average:
    """The running mean of the weights over the last few hundred steps: what the model reads like once the learning rate has fallen."""

    def __init__(self, model, keep=.995):
        self.keep = keep
        self.names = [n for n, _ in model.named_parameters()]
        self.weights = [p.detach().clone() for p in model.parameters()]

    def update(self, model, step):
        torch._foreach_lerp_(self.weights, [p.detach() for p in model.parameters()], max(1 - self.keep, 1 / (step + 1)))

    def named_parameters(self):
        return zip(self.names, self.weights)


def save(model, path, progress):
    state = {k: v.detach().to(torch.bfloat16).cpu() for k, v in model.named_parameters()}
    torch.save({"progress": progress, "state": state}, path + ".tmp")
    os.replace(path + ".tmp", path)


def load(model, saved):
    own = dict(model.named_parameters())
    with torch.no_grad():
        for k, v in saved["state"].items():
            own[k].copy_(v.float())


def main():
    args = arguments()
    os.makedirs(args.out, exist_ok=True)
    log = Log(args.out + "/log.txt")
    device = torch.device(args.device)
    tok_path = os.path.join(HERE, "tokenizer.json")
    saved = torch.load(args.resume, map_location="cpu") if args.resume else {"progress": 0.0}
    if args.start is None:
        args.start = saved["progress"]
    fonts = Fonts(args.assets, workers=args.workers, most=args.families)
    held = Fonts(args.assets, held=True, workers=args.workers) if args.evaluate else None
    log("fonts:", len(fonts.families), "families,", len(fonts.ink) >> 20, "MiB of glyphs")
    loader = Loader(tok_path, fonts, args.workers, args.slots, 1000003 * args.seed + int(args.start * 1e6), args.scale, args.start)
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")
        torch.backends.cudnn.allow_tf32 = True
    if args.cache and os.path.exists(args.cache):
        with open(args.cache, "rb") as f:
            torch.compiler.load_cache_artifacts(f.read())
        log("compiled kernels loaded")
    torch.manual_seed(args.seed)
    model = Mini(SIZES[args.size]).to(device)
    if args.resume:
        load(model, saved)
        log("resumed from", args.resume, "of progress", saved["progress"])
    eager = (SamLayer.forward, EncoderLayer.forward, DecoderLayer.forward, Mini.compress)
    if device.type == "cuda":
        compile_parts()
    log(exported_parameters(model), "parameters to export")
    optimiser = Optimiser(model, args.lr, args.adam_lr, device)
    trainer = Trainer(args, model, render.Atlas(fonts, device), device)
    batches, stop = queue.Queue(3), threading.Event()
    threading.Thread(target=feed, args=(loader, device, batches, stop), daemon=True).start()
    run(args, trainer, optimiser, loader, batches, log)
    stop.set()
    loader.close()
    SamLayer.forward, EncoderLayer.forward, DecoderLayer.forward, Mini.compress = eager
    if args.evaluate:
        evaluate.report(model, T.Tokenizer(tok_path), held, args.evaluate, device, args.out, log)
    with open(args.out + "/DONE", "w") as f:
        f.write("ok\n")
    os._exit(0)


def run(args, trainer, optimiser, loader, batches, log):
    model, device = trainer.model, trainer.device
    average = Average(model)
    totals, step, pages, waited = torch.zeros(len(STATS), device=device), 0, 0, 0.0
    kinds = collections.Counter()
    events = collections.deque()
    begun = line = saved = time.time()
    clock = None  # starts when everything is compiled
    shapes = set()
    progress, decayed = args.start, False
    while True:
        now = time.time()
        if clock is None and (step >= args.steps_before_clock or now - begun > 150):
            clock = now
            log("clock starts at step", step)
        progress = args.start + (args.end - args.start) * ((now - clock) / args.time if clock else 0)
        if progress >= args.end:
            break
        loader.progress.value = progress
        for _ in range(args.accumulate):
            t = time.time()
            info, batch = batches.get()
            waited += time.time() - t
            kind = "%s%s" % (info["kind"], info["tiles"] or "")
            if device.type == "cuda" and (kind, info["room"]) not in shapes:
                shapes.add((kind, info["room"]))
                t = time.time()
                totals += trainer.forward_backward(info, batch, progress, 1 / args.accumulate)
                torch.cuda.synchronize()
                if time.time() - t > 2:
                    log("first", kind, info["room"], "took %.1f s" % (time.time() - t))
            else:
                totals += trainer.forward_backward(info, batch, progress, 1 / args.accumulate)
            pages += info["pages"]
            kinds[kind] += info["pages"]
        fall = 1.0 if progress < 1 - args.decay else max(.01, (1 - progress) / args.decay)
        optimiser.step(min(1.0, (step + 1) / 80) * fall)
        average.update(model, step)
        step += 1
        if device.type == "cuda":
            e = torch.cuda.Event()
            e.record()
            events.append(e)
            if len(events) > 2:
                events.popleft().synchronize()
        if step in (1, 2, 5, 20) or step % args.every == 0:
            v = (totals / totals[-1]).tolist()
            seconds = time.time() - line
            log("step %d p %.3f lr %.2f | lm %.3f token %.4f | patch %.3f (%.3f) cell %.3f (%.3f) | place %.2f/%.2f | bal %.2f | %.0f pages/s, waited %.1f of %.1f s | %s%s" % (
                step, progress, fall, v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], pages / seconds, waited, seconds,
                " ".join("%s:%d" % k for k in sorted(kinds.items())),
                " | %.0f GiB" % (torch.cuda.max_memory_allocated() / 2 ** 30) if device.type == "cuda" else ""))
            totals.zero_()
            kinds.clear()
            line, pages, waited = time.time(), 0, 0.0
        if args.cache and step == 150 and not os.path.exists(args.cache):
            found = torch.compiler.save_cache_artifacts()
            if found:
                with open(args.cache, "wb") as f:
                    f.write(found[0])
                log("compiled kernels kept:", len(found[0]) >> 20, "MiB")
        if args.profile and step == 120:
            profile(trainer, batches, log)
        if time.time() - saved > 60:
            save(model, args.out + "/last.pt", progress)
            save(average, args.out + "/average.pt", progress)
            saved = time.time()
        if not decayed and progress >= 1 - args.decay:
            save(model, args.out + "/before_decay.pt", progress)
            decayed = True
    save(model, args.out + "/last.pt", progress)
    save(average, args.out + "/average.pt", progress)
    log("done after", step, "steps and %.0f s of training" % (time.time() - (clock or begun)))


def profile(trainer, batches, log):
    from torch.profiler import ProfilerActivity, profile as record
    with record(activities=[ProfilerActivity.CUDA]) as p:
        for _ in range(6):
            info, batch = batches.get()
            trainer.forward_backward(info, batch, .3, .5)
            torch.cuda.synchronize()
    log(p.key_averages().table(sort_by="cuda_time_total", row_limit=40, max_name_column_width=60)[:12000])


if __name__ == "__main__":
    main()
