"""One module for each family of golden cases, named after its file.

    schemes = ("alibi",)                             # what must be registered for the family to count as covered

    def compare(case: Case) -> Iterator[Check]:      # ours beside theirs, from the case's arguments and arrays alone
        ...

Our side is computed through the public names and the hooks. What today's schemes cannot express raises
`NotCovered(reason)`. Every array of a case must be looked at, be it as input or as a number to agree with.
"""
