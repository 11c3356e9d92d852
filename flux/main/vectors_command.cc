// flux vectors: the rows of a saved model's table for the words of a vocabulary, as text that other
// programs read: "WORDS DIM", then for each word a line "word v1 v2 ...". Of rows that
// skip_gram_loss reads it is the first half: the word's vector as a center.
#include <algorithm>
#include <numeric>

#include "flux/base/text.h"
#include "flux/client/key_plan.h"
#include "flux/data/vocabulary.h"
#include "flux/main/checked_job.h"
#include "flux/main/commands.h"
#include "flux/main/saved_model.h"
#include "flux/main/text_out.h"
#include "flux/nn/operator.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

constexpr size_t kWordsAtOnce = 4096;

Result<size_t> find_table(const Graph& graph, const std::string& name) {
  const std::vector<std::string>& tables = graph.tables();
  if (tables.empty()) return invalid("the model has no table, so there are no vectors");
  const auto at = std::find(tables.begin(), tables.end(), name);
  if (name.empty()) return size_t{0};
  if (at == tables.end())
    return invalid("--table {}: the model has no such table{}; tables: {}", name,
                   did_you_mean(name, tables), join(tables, ", "));
  return static_cast<size_t>(at - tables.begin());
}

// How many numbers of a row are shown.
uint32_t shown_dim(const Graph& graph, size_t table, bool whole) {
  const uint32_t dim = graph.inputs().tables.at(graph.tables()[table]);
  const bool halves =
      std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node& node) {
        return node.op == "skip_gram_loss" && node.table == static_cast<int>(table);
      });
  return halves && !whole ? dim / 2 : dim;
}

// Pulls rows of one table from a saved model.
class RowSource {
 public:
  RowSource(SavedModel* model, size_t table, uint32_t shown)
      : model_(model),
        table_(table),
        shown_(shown),
        plan_(model->server->sparse_shards()),
        shards_(model->server->shard_count()) {
    std::iota(shards_.begin(), shards_.end(), 0U);
    const Graph& graph = *model->role.graphs[0];
    for (const std::string& name : graph.tables()) dims_.push_back(graph.inputs().tables.at(name));
    rows_.resize(dims_.size());
  }
  uint32_t dim() const { return shown_; }

  Status pull(std::span<const uint64_t> keys) {
    plan_.build(keys);
    std::vector<float*> pointers;
    for (size_t t = 0; t < dims_.size(); ++t) {
      rows_[t].resize(plan_.unique() * dims_[t]);
      pointers.push_back(rows_[t].data());
    }
    PullRequest request;
    request.incarnation = model_->incarnation;
    request.shards = shards_;
    request.keys = plan_.sharded();
    request.tables = pointers;
    Status status;
    model_->server->pull(request, [&](const PullReply& reply) { status = reply.status; });
    return status;
  }
  // Of the i-th key of the last pull.
  std::span<const float> row(size_t i) const {
    return {rows_[table_].data() + static_cast<size_t>(plan_.index()[i]) * dims_[table_], shown_};
  }

 private:
  SavedModel* model_;
  size_t table_;
  uint32_t shown_;  // numbers of a row
  KeyPlan plan_;
  std::vector<ShardId> shards_;
  std::vector<uint32_t> dims_;
  std::vector<std::vector<float>> rows_;
};

Status write_vectors(const Vocabulary& vocabulary, RowSource* source, TextOut* out) {
  std::string text = fmt::format("{} {}\n", vocabulary.words.size(), source->dim());
  for (size_t begin = 0; begin < vocabulary.words.size(); begin += kWordsAtOnce) {
    const size_t end = std::min(vocabulary.words.size(), begin + kWordsAtOnce);
    std::vector<uint64_t> keys;
    for (size_t i = begin; i < end; ++i) keys.push_back(word_key(vocabulary.words[i]));
    FLUX_RETURN_IF_ERROR(source->pull(keys));
    for (size_t i = begin; i < end; ++i) {
      text += vocabulary.words[i];
      for (const float value : source->row(i - begin))
        fmt::format_to(std::back_inserter(text), " {}", value);
      text += '\n';
    }
    FLUX_RETURN_IF_ERROR(out->write(text));
    text.clear();
  }
  return out->finish();
}

Status vectors(const VectorsArguments& arguments) {
  FLUX_ASSIGN_OR_RETURN(const Job job, load_checked_job(arguments.job, {}, false));
  const std::string& words =
      arguments.vocabulary.empty() ? job.data.vocabulary : arguments.vocabulary;
  if (job.phases.size() > 1 || job.key_groups > 1)
    return invalid("{}: vectors are written of jobs with one network and tables of all slots",
                   job.path);
  if (words.empty())
    return invalid("{}: whose vectors? Give --vocabulary FILE, made by flux data vocab", job.path);
  if (is_folder(arguments.out)) return invalid("--out {}: it is a folder", arguments.out);
  FLUX_ASSIGN_OR_RETURN(const Vocabulary vocabulary, Vocabulary::load(words));
  FLUX_ASSIGN_OR_RETURN(const auto model, open_saved_model(job, arguments.checkpoint));
  FLUX_ASSIGN_OR_RETURN(const size_t table, find_table(*model->role.graphs[0], arguments.table));
  if (arguments.out != "-") FLUX_RETURN_IF_ERROR(make_folders(parent_folder(arguments.out)));
  FLUX_ASSIGN_OR_RETURN(const auto out, TextOut::create(arguments.out));
  RowSource source(model.get(), table, shown_dim(*model->role.graphs[0], table, arguments.whole));
  FLUX_RETURN_IF_ERROR(write_vectors(vocabulary, &source, out.get()));
  if (!out->to_screen())
    fmt::print("{} vectors of {} in {}\n", with_commas(vocabulary.words.size()), source.dim(),
               arguments.out);
  return Status::ok();
}

}  // namespace

int vectors_command(const VectorsArguments& arguments) {
  return report(vectors(arguments));
}

}  // namespace flux
