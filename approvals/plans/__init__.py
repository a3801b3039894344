"""Plans: up to twenty exact calls that an agent proposes as one card, decided in one act and run in their order.

Each call is an action of its own, with its own digest and its own single start. `proposing` records them, `deciding`
decides them, `order` says whose turn it is and ends what comes after a failure, `fate` says what became of the whole.
"""
