// Runs tests/scripts/queue_*.txt (base/script_test.h).
//
//   queue 3 2 1 / 2 0 1        batches of each block / order of leases; section pass 4 epoch 1
//   options floor=30 factor=5 before=2 alone=3 chance=1e-6    before `queue`; times are seconds
//   at T                       the time, without telling the queue
//   lease W                    worker W asks
//   lend W                     worker W has nothing, and nothing is left
//   applied B.b                every shard acknowledged batch b of block B
//   late B.b                   the same of another section
//   leave W | die W            worker W is gone
//   back W B                   worker W gives block B back
//   expire                     takes back what has not moved
//   poisoned                   takes condemned batches over
//   settled B.b                a condemned batch has its verdict
//   recompute [safe] m m m     masks of batches that every shard has
//   point | safe P             a save begins | the manifest of save P is committed
#include "flux/cluster/block_queue.h"

#include <optional>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "flux/base/script_test.h"

namespace flux {
namespace {

constexpr BlockId kSection{4, 0, 1, 0};

std::string show(const BlockLease& lease) {
  return fmt::format("{}: {} batches, skip {:b}, attempt {}", to_string(lease.id), lease.batches,
                     lease.skip_mask, lease.attempt);
}

class Script {
 public:
  std::string run_line(const std::string& line) {
    std::istringstream in(line);
    std::string verb;
    in >> verb;
    const std::string out = run_verb(verb, &in, line);
    return verb == "options" || verb == "at" ? out : out + standing();
  }

 private:
  std::string run_verb(const std::string& verb, std::istringstream* in, const std::string& line) {
    WorkerId worker = 0;
    uint64_t point = 0;
    if (verb == "queue") {
      make(in);
    } else if (verb == "options") {
      for (std::string word; *in >> word;) set_option(word);
    } else if (verb == "at") {
      *in >> now_;
      now_ *= kSecond;
    } else if (verb == "lease" && *in >> worker) {
      BlockLease lease;
      return queue_->lease(worker, now_, &lease) ? "> " + show(lease) + "\n"
                                                 : "> nothing to lease\n";
    } else if (verb == "lend" && *in >> worker) {
      BlockLease lease;
      return queue_->lend(worker, now_, &lease) ? "> " + show(lease) + "\n" : "> nothing to lend\n";
    } else if (verb == "applied" || verb == "late" || verb == "settled") {
      BatchId id = batch(in);
      if (verb == "late") id.block.epoch = 0;
      verb == "settled" ? queue_->settled(id) : queue_->batch_applied(id, now_);
    } else if ((verb == "leave" || verb == "die") && *in >> worker) {
      queue_->release(worker, verb == "die");
    } else if (verb == "back" && *in >> worker) {
      BlockId id = kSection;
      *in >> id.block;
      queue_->release_block(worker, id);
    } else if (verb == "expire") {
      std::string out;
      for (const BlockLease& lease : queue_->expire(now_))
        out += fmt::format("> from worker {}: {}\n", lease.worker, show(lease));
      return out;
    } else if (verb == "poisoned") {
      std::string out;
      for (const BatchId& id : queue_->take_poisoned())
        out += "> poisoned: " + to_string(id) + "\n";
      return out;
    } else if (verb == "recompute") {
      recompute(in);
    } else if (verb == "point") {
      return fmt::format("> point {}\n", queue_->mark_point());
    } else if (verb == "safe" && *in >> point) {
      queue_->applied_before_are_safe(point);
    } else {
      ADD_FAILURE() << "unknown line: " << line;
    }
    return "";
  }
  static BatchId batch(std::istringstream* in) {
    BatchId id{kSection, 0, 32};
    unsigned batch = 0;
    char dot = 0;
    *in >> id.block.block >> dot >> batch;
    id.batch = static_cast<uint8_t>(batch);
    return id;
  }
  void set_option(const std::string& word) {
    const double value = std::stod(word.substr(word.find('=') + 1));
    if (word.starts_with("floor=")) options_.timeout_floor_ns = TimeNs(value * kSecond);
    if (word.starts_with("factor=")) options_.timeout_factor = value;
    if (word.starts_with("before=")) options_.deaths_before_alone = static_cast<uint32_t>(value);
    if (word.starts_with("chance=")) options_.innocent_chance = value;
    if (word.starts_with("alone=")) options_.deaths_alone_max = static_cast<uint32_t>(value);
  }
  void make(std::istringstream* in) {
    std::vector<uint8_t> batches;
    std::vector<uint32_t> order;
    bool ordering = false;
    for (std::string word; *in >> word;) {
      if (word == "/") {
        ordering = true;
      } else if (ordering) {
        order.push_back(static_cast<uint32_t>(std::stoul(word)));
      } else {
        batches.push_back(static_cast<uint8_t>(std::stoul(word)));
      }
    }
    blocks_ = batches.size();
    queue_.emplace(kSection, batches, order, options_);
  }
  void recompute(std::istringstream* in) {
    bool safe = false;
    std::vector<uint32_t> masks;
    for (std::string word; *in >> word;) {
      if (word == "safe") {
        safe = true;
      } else {
        masks.push_back(static_cast<uint32_t>(std::stoul(word, nullptr, 2)));
      }
    }
    queue_->recompute(masks, safe);
  }
  std::string standing() const {
    std::string text = ">";
    for (uint32_t b = 0; b < blocks_; ++b)
      text += fmt::format(" {}", block_state_name(queue_->state(b)));
    text += fmt::format(": {} to lease, {} pending, {} applied, {} done", queue_->todo(),
                        queue_->pending(), queue_->applied(), queue_->done());
    if (queue_->aside() > 0) text += fmt::format(", {} aside", queue_->aside());
    if (queue_->reissued() > 0) text += fmt::format(", {} issued again", queue_->reissued());
    if (const auto due = queue_->next_time(); due)
      text += fmt::format(", until {:g} s", static_cast<double>(*due) / kSecond);
    if (queue_->all_applied()) text += ", all applied";
    if (queue_->all_done()) text += ", all done";
    return text + "\n";
  }

  BlockQueueOptions options_;
  std::optional<BlockQueue> queue_;
  size_t blocks_ = 0;
  TimeNs now_ = 0;
};

FLUX_SCRIPT_TEST(BlockQueueScript, "queue_", Script);

}  // namespace
}  // namespace flux
