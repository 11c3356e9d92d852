#include "flux/worker/evaluated_check.h"

#include <cmath>

#include "flux/base/finite.h"
#include "flux/base/text.h"

namespace flux {
namespace {

// The records whose own loss is no number.
std::vector<uint32_t> bad_examples(const NetInput& input, Net* net) {
  std::vector<uint32_t> bad;
  std::vector<float> labels;
  for (uint32_t e = 0; e < input.batch; ++e)
    if (!std::isfinite(net->predict(example_of(input, net->graph().inputs(), e, &labels), nullptr)))
      bad.push_back(e);
  return bad;
}

std::string place_of(const BlockReader& reader, const BatchId& id) {
  const std::string place = reader.describe(id.batch);
  return place.empty() ? fmt::format("block {} batch {} of the data", id.block.block, id.batch)
                       : place;
}

std::string blame(const std::vector<uint32_t>& bad, const NetInput& input,
                  const BlockReader& reader, const BatchId& id) {
  if (bad.empty()) return "though that of each record alone is a number: it is too large";
  if (bad.size() == input.batch && bad.size() > 1)
    return "as is that of every record in it: the model diverged; lower the learning rate and "
           "start from an older checkpoint";
  std::string first = reader.describe_example(id.batch, bad.front());
  if (first.empty()) first = fmt::format("that is example {} of the batch", bad.front());
  const std::string more =
      bad.size() == 1 ? "" : fmt::format(" and {}", counted(bad.size() - 1, "other"));
  return fmt::format(
      "because of the record {}{}: the model computes no number of what it holds; are its values "
      "far out? (flux data stats)",
      first, more);
}

}  // namespace

NetInput example_of(const NetInput& input, const ModelInputs& model, uint32_t e,
                    std::vector<float>* labels) {
  NetInput one = input;
  one.batch = 1;
  labels->clear();
  for (size_t l = 0; input.labels != nullptr && l < model.labels.size(); ++l)
    labels->push_back(input.labels[l * input.batch + e]);
  if (input.labels != nullptr) one.labels = labels->data();
  if (input.dense != nullptr) one.dense = input.dense + size_t{e} * model.dense;
  if (input.weights != nullptr) one.weights = input.weights + e;
  if (input.begin != nullptr) {
    one.begin = input.begin + size_t{e} * model.slots;  // counts from the first of the batch
    return one;
  }
  for (TableInput& table : one.tables) table.index += size_t{e} * model.slots;
  if (input.values != nullptr) one.values = input.values + size_t{e} * model.slots;
  return one;
}

Status check_evaluated(double loss, const NetInput& input, Net* net, const BlockReader& reader,
                       const BatchId& id) {
  if (std::isfinite(loss)) [[likely]]
    return Status::ok();
  return invalid("the loss at {} is {} {}", place_of(reader, id), float_text(loss),
                 blame(bad_examples(input, net), input, reader, id));
}

}  // namespace flux
