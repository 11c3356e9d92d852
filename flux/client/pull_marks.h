// PullMarks: where the servers' counts of examples stood when a batch pulled its values; the push
// of its gradient names them (api/push_age.h). Of several marks of one count the oldest stays; of
// two counts of one server none is told. Plain values; one owner.
#pragma once

#include <algorithm>
#include <vector>

#include "flux/api/push_age.h"
#include "flux/protocol/shard_replica.h"

namespace flux {

class PullMarks {
 public:
  void clear() { marks_.clear(); }
  void add(ServerId server, AgeMark mark) {
    const auto at = find(server);
    if (at == marks_.end())
      marks_.push_back({server, mark});
    else if (at->mark.clock != mark.clock)
      at->mark = {};
    else
      at->mark.examples = std::min(at->mark.examples, mark.examples);
  }
  AgeMark of(ServerId server) const {
    const auto at = find(server);
    return at == marks_.end() ? AgeMark{} : at->mark;
  }
  // Those of a push that sums up batches of all: as old as the oldest of them, where all are known.
  void merge(const PullMarks& other) {
    std::erase_if(marks_,
                  [&](const Mark& m) { return other.find(m.server) == other.marks_.end(); });
    for (Mark& m : marks_) add(m.server, other.of(m.server));
  }

 private:
  struct Mark {
    ServerId server = 0;
    AgeMark mark;
  };
  std::vector<Mark>::iterator find(ServerId server) {
    return std::find_if(marks_.begin(), marks_.end(),
                        [&](const Mark& m) { return m.server == server; });
  }
  std::vector<Mark>::const_iterator find(ServerId server) const {
    return std::find_if(marks_.begin(), marks_.end(),
                        [&](const Mark& m) { return m.server == server; });
  }

  std::vector<Mark> marks_;  // few
};

}  // namespace flux
