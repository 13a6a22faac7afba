"""HTTP itself: sockets, connections, server-sent events, and errors as each API spells them."""
