// Dataset: files to batches. scan() cuts files into a Geometry; a BlockReader reads one block.
//
// Threads: scan() may use `threads` of them and joins them before it returns. A Dataset is
// immutable after open() and shared by all trainer threads. A BlockReader is immutable after
// open_block(), so several threads may parse different batches of it at once.
// Failure: kNotFound / kIo for files, kInvalid ("path:line:col: what is wrong, what is allowed")
// for records. Nothing is skipped silently.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/data/batch.h"
#include "flux/data/geometry.h"
#include "flux/data/sources/pipe_options.h"

namespace flux {

// A sparse feature of the examples, as the job file declares it.
struct SlotOptions {
  std::string name;
  // Slots with the same word here have the same keys, and so share rows: the items of a history and
  // the item that is shown. Empty: the slot's own name.
  std::string keys;
  bool text = false;    // keys are text, not numbers
  bool values = false;  // a key may have a number behind it, by which its row is multiplied
};

// A feature that is computed from others (data/features/feature.h). Which settings count is said by
// `op`; the others stay as they are.
struct FeatureOptions {
  std::string name;
  std::string op;
  std::vector<std::string> of;     // names of slots, dense features or features
  std::string keys;                // as in SlotOptions
  uint64_t modulus = 0;            // hash: keys are taken modulo this; 0: as they are
  std::vector<double> boundaries;  // bucketize: rising
  std::vector<double> quantiles;   // bucketize: boundaries that may repeat
  double log_base = 0;             // bucketize: boundaries 1, b, b^2, ...; 0: not so
  uint32_t buckets = 32;           // bucketize: how many of those
  uint32_t limit = 100;            // cross: combinations of one example; the first ones stay
  double min = 0, max = 1;         // clip
  double mean = 0, deviation = 1;  // normalise
};

// How the lines of csv files are cut.
struct CsvOptions {
  bool header = true;                       // the first line of each file names the columns
  std::string separator = ",";              // a character, or "tab"
  std::string quote = "\"";                 // a character; "": cells are never quoted
  std::string list = "|";                   // a character between the keys in a cell of a slot
  std::vector<std::string> missing = {""};  // cells that say nothing
  std::vector<std::string> ignore;  // columns that are not read; "*": all that are not declared
  // Columns that are no feature.
  std::string weight = "weight", id = "id", sid = "sid";
};

// What the loss of a label needs it to be.
struct LabelRule {
  uint32_t label = 0;    // its index
  uint32_t classes = 0;  // the number of one of these classes, from 0; 0: from 0 to 1
  bool operator==(const LabelRule&) const = default;
};

struct DataOptions {
  std::string format = "criteo_tsv";  // one of data_formats()
  PipeOptions pipe;                   // of formats with a record in each line
  uint32_t batch_size = 1000;
  bool shuffle = true;
  // Before a pass its records are put into an order of all of them, as a block file in the job's
  // output (tools/global_shuffle.h).
  bool global_shuffle = false;
  uint64_t shuffle_memory_mb = 256;
  uint64_t seed = 1;
  std::string dense_transform = "log1p";  // log1p: log(1 + max(x, 0)) | none
  // Replaces the sparse features of every example by one key, its record number in the pass: the
  // counting model, which shows exactly which examples were applied how often.
  bool key_per_example = false;
  // What the lines of a format without fixed columns hold.
  std::vector<SlotOptions> slots;
  std::vector<std::string> dense;               // names of numbers
  std::vector<std::string> labels = {"label"};  // in the order of the line
  std::vector<LabelRule> label_rules;           // of losses that do not take any number
  bool weights = false;                         // examples have a weight
  bool raw_keys = false;     // keys of the lines are those of tables: all slots share one key space
  bool one_key = false;      // every slot has exactly one key
  uint64_t bad_records = 0;  // of a pass that may be set aside (bad_records.h)
  // What stands where in a line, of formats that go by place (text/columns.h); empty: the default.
  std::vector<std::string> columns;
  bool minus_one_is_zero = false;  // labels of -1 and 1 are the classes 0 and 1
  CsvOptions csv;
  std::vector<FeatureOptions> features;  // computed from those above
  // Slots and features that a model does not see: what others are computed from.
  std::vector<std::string> hidden;
  std::string group;  // slot whose first key says whose example it is, for metrics by group
  std::vector<std::string> slices;  // slots by whose first key metrics are told apart
  // Of sentences.
  std::string vocabulary;   // file of words and their counts (vocabulary.h); needed
  uint32_t negatives = 5;   // drawn for each line
  double subsample = 1e-3;  // word_sampler.h; 0: every word is kept
};

// What every example offers to a model.
struct Features {
  uint32_t slots = 0;
  uint32_t dense = 0;
  std::vector<std::string> slot_names;
  bool many_keys = false;  // a slot has any number of keys, else exactly one
  std::vector<std::string> labels;
  bool weights = false;
  bool values = false;  // keys have values
};
Features features_of(const DataOptions& options);
// Whether records are lines of text; else they lie in files of another kind, which has an index.
bool has_lines(const DataOptions& options);
// Lines before the first record of each file.
uint32_t header_lines_of(const DataOptions& options);
// Every format that `format` may name.
const std::vector<std::string>& data_formats();
// Geometry::shuffle_seed for these options: 0 without shuffling, never 0 with it.
uint64_t shuffle_seed_of(const DataOptions& options);

// Expands globs ('*', '?', '[..]') in sorted order; a pattern or path without a match is an error.
Result<std::vector<std::string>> expand_globs(std::span<const std::string> patterns);

class BlockReader {
 public:
  virtual ~BlockReader() = default;
  // Fills *out with batch `batch` of this block, reusing its memory.
  virtual Status read_batch(uint32_t batch, Batch* out) const = 0;
  // Where a batch lies, for people, as describe_batch() (batch_place.h) but with the bytes from the
  // first to the last record of the batch itself: "a.tsv:200..310 (records 21 to 30)". "" from a
  // reader that does not know.
  virtual std::string describe(uint32_t /*batch*/) const { return ""; }
  // Where one of its examples lies: "a.tsv:200..211 (record 21)".
  virtual std::string describe_example(uint32_t /*batch*/, uint32_t /*example*/) const {
    return "";
  }
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  // Cuts `files` anew; kCancelled soon after *stop (if given) turns true.
  static Result<Geometry> scan(std::span<const std::string> files, const DataOptions& options,
                               unsigned threads, const std::atomic<bool>* stop = nullptr);
  // Opens files as an earlier scan cut them; kInvalid (with the differences) if a file has changed
  // its size since.
  static Result<std::unique_ptr<Dataset>> open(const Geometry& geometry,
                                               const DataOptions& options);
  virtual const Geometry& geometry() const = 0;
  virtual const Features& features() const = 0;
  // Loads a block and orders it for an epoch.
  virtual Result<std::unique_ptr<BlockReader>> open_block(uint32_t block, uint32_t epoch) const = 0;
};

}  // namespace flux
