// EtcdClient: the few calls of etcd v3 that an election needs, over its JSON gateway (HTTP).
//
// Every call asks one endpoint after the other, beginning with the one that answered last, each for
// a limited time, until one answers as etcd does. A call that failed may have taken effect. Reads
// are linearizable. The first answer fixes the cluster: an endpoint of another one is refused.
// Threads: any, at once; a call blocks for at most Limit::total (the resolving of host names has
// the system's own limits). Failure: kUnavailable names every endpoint that was asked and what was
// wrong there; kNotFound: etcd does not know that lease; kInvalid: etcd refuses for good (needs a
// user), or files for TLS are bad.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "flux/base/executor.h"
#include "flux/base/status.h"
#include "flux/election/endpoints.h"

namespace flux {

struct EtcdOptions {
  std::vector<EtcdEndpoint> endpoints;  // at least one
  std::string ca_file;                  // PEM; empty: the system's authorities
  std::string certificate, key;         // PEM files of our own, if etcd asks for one
};

struct EtcdLimit {
  TimeNs attempt = 2 * kSecond;  // one endpoint
  TimeNs total = 5 * kSecond;    // all of them
};

struct EtcdLease {
  int64_t id = 0;
  int64_t ttl_s = 0;
};

struct EtcdPair {
  std::string key, value;
  int64_t create_revision = 0;
  int64_t lease = 0;
};

// True if every key in [key, range_end) (range_end empty: that key) was created at that revision;
// 0: there is none.
struct EtcdCompare {
  std::string key, range_end;
  int64_t create_revision = 0;
};

struct EtcdStep {
  enum class Kind : uint8_t { kGet, kLast, kPut, kRemove };
  Kind kind = Kind::kGet;
  std::string key;
  std::string range_end;  // kLast: of [key, range_end) the highest; kRemove: all of them
  std::string value;      // kPut
  int64_t lease = 0;      // kPut
};

struct EtcdAnswer {
  bool succeeded = false;  // every compare was true
  int64_t revision = 0;    // of the store, after the steps
  // For each step that was done what it found (kPut, kRemove: nothing).
  std::vector<std::vector<EtcdPair>> found;
};

class EtcdClient {
 public:
  // Reads the files for TLS; asks nobody yet.
  static Result<std::unique_ptr<EtcdClient>> make(const EtcdOptions& options);
  ~EtcdClient();
  EtcdClient(const EtcdClient&) = delete;
  EtcdClient& operator=(const EtcdClient&) = delete;

  Result<EtcdLease> grant(int64_t ttl_s, const EtcdLimit& limit);
  Result<int64_t> keep_alive(int64_t lease, const EtcdLimit& limit);  // seconds it lasts from now
  Status revoke(int64_t lease, const EtcdLimit& limit);
  // All of it or nothing, at one moment.
  Result<EtcdAnswer> txn(const std::vector<EtcdCompare>& compares,
                         const std::vector<EtcdStep>& then, const std::vector<EtcdStep>& otherwise,
                         const EtcdLimit& limit);

  std::string urls() const;  // "http://a:2379, http://b:2379"

 private:
  struct Impl;
  explicit EtcdClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace flux
