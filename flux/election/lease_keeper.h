// LeaseKeeper: keeps one lease at etcd alive on a thread of its own, and knows without asking
// anybody until when it surely lives. Private to this library.
//
// The lease is trusted for four fifths of its time, counted from before the request that renewed
// it was sent, on a clock that goes on while the machine sleeps. Etcd counts the whole time from a
// later moment, so we have given up before it can run out there. Given up once is given up for
// ever. Threads: any. `client` outlives this. The destructor waits for the request under way, if
// any.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "flux/base/executor.h"
#include "flux/base/status.h"
#include "flux/election/etcd_client.h"

namespace flux {

// Monotonic, counts sleep and suspension too.
TimeNs boot_now_ns();

class LeaseKeeper {
 public:
  // `asked`: boot_now_ns() before the lease was asked for.
  LeaseKeeper(EtcdClient* client, const EtcdLease& lease, TimeNs asked);
  ~LeaseKeeper();
  LeaseKeeper(const LeaseKeeper&) = delete;
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;

  // kStale: it may have run out, and why.
  Status held() const;
  // How long it surely lives if it is never renewed again; 0 or less: held() fails.
  TimeNs left_ns() const;
  // From now on held() fails with `why`, and nothing is renewed.
  void give_up(Status why);
  int64_t lease() const { return lease_.id; }

 private:
  void run();
  void renew(std::unique_lock<std::mutex>* lock);
  Status held_locked() const;

  EtcdClient* const client_;
  const EtcdLease lease_;
  const TimeNs period_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  TimeNs renewed_;  // when the last renewal was asked for
  TimeNs until_;
  mutable Status lost_;
  std::string problem_;  // of the last renewal
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace flux
