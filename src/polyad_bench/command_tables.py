"""The commands that this package adds to the command line."""

from polyad.cli.command_tables import CommandTable

_RUN_STORED = "the documents indexed so far are stored if you gave --store, and the results so far if you gave --out"
_RUN_AGAIN = "the results so far are stored; run the same command again to continue"

TABLES = (
    CommandTable(
        "eval measure:evaluate Measure retrievers on a benchmark.",
        package="polyad_bench.commands",
        after_interrupt={"eval": _RUN_STORED},
    ),
    CommandTable(
        """
        run measure:evaluate Measure retrievers on a benchmark.
        compare runs:compare Compare the retrievers of one or two runs of `polyad eval --out`.
        report runs:report Write tables, plots and a web page on runs of `polyad eval --out`.
        import-run runs:import_run Import rankings of a system that polyad does not implement.
        sweep experiments:sweep Measure retrievers with each combination of several values of settings.
        ablate experiments:ablate Measure a retriever several times, each time without one part of its method.
        experiment experiments:experiment Measure several variants of the settings, which a TOML file lists.
        questions questions:questions Generate questions on your own documents, to measure retrievers.
        thresholds thresholds:thresholds Print the thresholds of presets for the embedder of an index.
        train train:train Train a retriever on questions with gold documents.
        """,
        package="polyad_bench.commands",
        group="bench",
        help="Measure retrievers on questions, compare runs and train weights. `polyad eval` is short for `bench run`.",
        after_interrupt={
            **dict.fromkeys(("run", "train"), _RUN_STORED),
            **dict.fromkeys(("questions", "compare", "report", "experiment", "sweep", "ablate"), _RUN_AGAIN),
        },
    ),
)
