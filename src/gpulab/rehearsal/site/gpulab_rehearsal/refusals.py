"""What the rehearsal device cannot show, refused by name."""


def install() -> None:
    pass
