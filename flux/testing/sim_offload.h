// SimOffload: slow work on the simulated time line: it takes a while, then `done` is called.
// Belongs to one node; nothing runs after the node died.
#pragma once

#include <functional>
#include <utility>

#include "flux/base/offload.h"
#include "flux/testing/sim_node.h"

namespace flux {

class SimOffload final : public Offload {
 public:
  SimOffload(SimNode* node, TimeNs longest) : node_(node), longest_(longest) {}
  void run(std::function<void()> work, std::function<void()> done) override {
    SimWorld* world = node_->world();
    node_->post(world->draw(0, longest_),
                [node = node_, world, longest = longest_, work = std::move(work),
                 done = std::move(done)]() mutable {
                  work();
                  node->post(world->draw(0, longest), std::move(done));
                });
  }

 private:
  SimNode* node_;
  TimeNs longest_;
};

}  // namespace flux
