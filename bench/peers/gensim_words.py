"""word2vec in gensim: skip-grams with negative samples from a file of sentences; one JSON line.

`corpus_file` lets its workers read for themselves, which is its fastest way. What is timed is
training alone: counting words and saving vectors are left out.
"""

from __future__ import annotations

import argparse
import json
import time

from gensim.models import Word2Vec, word2vec


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--dim", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    model = Word2Vec(
        vector_size=args.dim,
        window=5,
        negative=5,
        sg=1,
        min_count=5,
        sample=1e-3,
        workers=args.threads,
        seed=args.seed,
    )
    model.build_vocab(corpus_file=args.corpus)
    start, start_cpu = time.perf_counter(), time.process_time()
    model.train(
        corpus_file=args.corpus,
        total_examples=model.corpus_count,
        total_words=model.corpus_total_words,
        epochs=args.epochs,
    )
    wall, cpu = time.perf_counter() - start, time.process_time() - start_cpu
    model.wv.save_word2vec_format(args.out)
    words = model.corpus_total_words * args.epochs
    result = {"words": words, "wall_s": wall, "cpu_s": cpu, "compiled": word2vec.FAST_VERSION >= 0}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
