"""Learn which team a support ticket is for, from the bytes of its text."""

import json
import multiprocessing
import random
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TEAMS = ("billing", "delivery", "network", "hardware")
WIDTH, BATCH = 96, 500  # bytes of a text that the model sees; tickets in a batch
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def write_tickets(path, count, seed=0):
    """Write `count` tickets, one JSON object a line; the words tell the team."""
    draw = random.Random(seed)
    words = ["refund invoice bank price", "parcel late street van", "router Wi-Fi down café"]
    words = [text.split() for text in [*words, "screen broken fan größer"]]
    with open(path, "w", encoding="utf-8") as file:
        for n in range(count):
            team = n % len(TEAMS)
            text = " ".join(draw.choices(words[team], k=draw.randint(6, 20)))
            ticket = {"id": f"T{n:06}", "text": text, "team": TEAMS[team]}
            file.write(json.dumps(ticket, ensure_ascii=False) + "\n")


class Tickets(Dataset):
    """The tickets of a file; a sample is the id, the text and the number of the team."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.tickets = [json.loads(line) for line in file]

    def __len__(self):
        return len(self.tickets)

    def __getitem__(self, index):
        ticket = self.tickets[index]
        return ticket["id"], ticket["text"], TEAMS.index(ticket["team"])


def collate(samples):
    """A batch: ids, the first WIDTH bytes of every text (tickets, WIDTH), teams (tickets,)."""
    names, texts, teams = zip(*samples)
    data = b"".join(text.encode()[:WIDTH].ljust(WIDTH, b"\0") for text in texts)
    codes = torch.frombuffer(bytearray(data), dtype=torch.uint8).view(-1, WIDTH)
    return list(names), codes, torch.tensor(teams)


def make_loader(path, workers=2):
    """A loader of all tickets in a file, shuffled, read by that many worker processes."""
    return DataLoader(
        Tickets(path),
        batch_size=BATCH,
        shuffle=True,
        num_workers=workers,
        collate_fn=collate,
        multiprocessing_context="fork",
    )


def private_mib():
    """MiB that each child process of ours has for itself alone, as the kernel counts them."""
    sizes = []
    for child in multiprocessing.active_children():
        text = Path(f"/proc/{child.pid}/smaps_rollup").read_text()
        lines = [line.split() for line in text.splitlines()]
        sizes.append(sum(int(line[1]) for line in lines if line[0] == "Private_Dirty:") // 1024)
    return sorted(sizes)


def frequencies(codes):
    """How often each byte occurs in a text: (tickets, WIDTH) to (tickets, 256)."""
    codes = codes.long()
    return torch.zeros(len(codes), 256, device=codes.device).scatter_add_(
        1, codes, torch.ones(codes.shape, device=codes.device)
    )


def train(path):
    """One epoch on the tickets of a file."""
    loader = make_loader(path)
    model = nn.Linear(256, len(TEAMS)).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.002)
    for n, (names, codes, teams) in enumerate(loader, 1):
        loss = nn.functional.cross_entropy(model(frequencies(codes.to(DEVICE))), teams.to(DEVICE))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if n % (len(loader) // 4) == 1:
            print(f"batch {n:3}: loss {loss.item():.3f}, MiB of each worker's own: {private_mib()}")


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tickets.jsonl"
        write_tickets(path, 100_000)
        print(f"{path.name}: {path.stat().st_size >> 20} MiB", flush=True)
        train(path)


if __name__ == "__main__":
    main()
