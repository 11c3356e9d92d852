// fan_out: asks every server the same thing and goes on when all have answered.
// The first failure is the outcome, with the server's name before it. Pure glue: no threads; all
// callbacks run on the caller's executor.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "flux/base/status.h"

namespace flux {

// `ask(i, answer)` starts the call to server i; `done` gets all values in order, or the failure.
template <typename T>
void fan_out(const std::vector<std::string>& names,
             const std::function<void(size_t, std::function<void(Result<T>)>)>& ask,
             std::function<void(Result<std::vector<T>>)> done) {
  struct Gather {
    std::vector<T> values;
    size_t left = 0;
    Status failure;
    std::function<void(Result<std::vector<T>>)> done;
  };
  auto gather = std::make_shared<Gather>();
  gather->values.resize(names.size());
  gather->left = names.size();
  gather->done = std::move(done);
  for (size_t i = 0; i < names.size(); ++i) {
    ask(i, [gather, i, name = names[i]](Result<T> answer) {
      if (answer.is_ok()) {
        gather->values[i] = std::move(answer).value();
      } else if (gather->failure.is_ok()) {
        gather->failure = answer.status().with_context(name);
      }
      if (--gather->left > 0) return;
      if (!gather->failure.is_ok()) {
        gather->done(gather->failure);
      } else {
        gather->done(std::move(gather->values));
      }
    });
  }
}

}  // namespace flux
