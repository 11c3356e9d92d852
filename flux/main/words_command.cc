// flux data gen corpus, flux data vocab: sentences and the words in them.
#include <algorithm>
#include <cstdio>
#include <thread>

#include "flux/base/text.h"
#include "flux/data/corpus_gen.h"
#include "flux/data/dataset.h"
#include "flux/data/piecewise_file.h"
#include "flux/data/vocabulary.h"
#include "flux/main/commands.h"
#include "flux/main/gen_progress.h"
#include "flux/main/not_an_input.h"
#include "flux/main/text_out.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

Status generate(const CorpusArguments& arguments) {
  CorpusGenOptions options;
  options.sentences = arguments.gen.examples;
  options.vocabulary = arguments.vocabulary;
  options.topics = arguments.topics;
  options.seed = arguments.gen.seed;
  options.truth_seed = arguments.gen.truth_seed;
  const std::string& out = arguments.gen.out;
  FLUX_RETURN_IF_ERROR(make_folders(parent_folder(out)));
  if (!arguments.truth.empty()) {
    FLUX_RETURN_IF_ERROR(make_folders(parent_folder(arguments.truth)));
    FLUX_RETURN_IF_ERROR(write_corpus_truth(options, arguments.truth));
  }
  CorpusGenReport made;
  {
    const GenProgress progress(options.sentences);
    FLUX_ASSIGN_OR_RETURN(
        made, generate_corpus(options, out, threads_of(arguments.gen.threads), progress.show()));
  }
  fmt::print(told_beside(out), "{}: {} sentences, {} words\n", out, with_commas(made.sentences),
             with_commas(made.words));
  return Status::ok();
}

Status count(const VocabArguments& arguments) {
  FLUX_ASSIGN_OR_RETURN(const auto files, expand_globs(arguments.files));
  FLUX_RETURN_IF_ERROR(not_an_input(arguments.out, files));
  FLUX_ASSIGN_OR_RETURN(const Vocabulary vocabulary,
                        count_words(files, arguments.min_count, threads_of(arguments.threads)));
  FLUX_RETURN_IF_ERROR(make_folders(parent_folder(arguments.out)));
  FLUX_RETURN_IF_ERROR(write_packed_by_name(arguments.out, vocabulary.to_text()));
  fmt::print(told_beside(arguments.out), "{}: {} words, which come {} times\n", arguments.out,
             with_commas(vocabulary.words.size()), with_commas(vocabulary.total));
  return Status::ok();
}

}  // namespace

int gen_corpus_command(const CorpusArguments& arguments) {
  return report(generate(arguments));
}

int vocab_command(const VocabArguments& arguments) {
  return report(count(arguments));
}

}  // namespace flux
