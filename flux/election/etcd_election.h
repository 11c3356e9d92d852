// EtcdElection: terms and leadership of a job in etcd v3, for a coordinator with standbys.
//
// Keys begin with /flux/<job>/<hash of the output folder>/. "leader" exists while somebody leads:
// it is bound to a lease that a thread of the leader keeps alive, and says who. "term/<12 digits>"
// is created, by the leader only, where it and all higher ones are absent; the highest one stays
// for ever. A leader that cannot renew its lease gives up before etcd can end it (lease_keeper.h);
// standbys look at "leader" a few times a second.
// Etcd's leases depend on clocks, of etcd's members too; so they are never the only guard: a claim
// and still_mine() read etcd, and terms are compared by everybody who is told one.
//
// Threads: any; one campaign() at a time. The destructor resigns. Failure: as election.h; messages
// name the endpoints.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "flux/election/election.h"
#include "flux/election/etcd_client.h"
#include "flux/election/lease_keeper.h"

namespace flux {

struct EtcdElectionOptions {
  EtcdOptions etcd;
  std::string job;     // its name
  std::string output;  // absolute path, the same for all who run this job
  int64_t ttl_s = 5;   // of the lease, 2 to 60: how soon a dead leader is replaced
  TimeNs poll_ns = 200 * kMillisecond;
  TimeNs first_answer_ns =
      10 * kSecond;  // campaign() fails if etcd has not answered at all by then
  EtcdLimit limit;   // of single calls
};

class EtcdElection final : public Election {
 public:
  // Asks nobody yet. kInvalid: options or TLS files are bad.
  static Result<std::unique_ptr<EtcdElection>> make(const EtcdElectionOptions& options);
  ~EtcdElection() override;

  void announce(const Candidate& self) override;
  Status campaign(const std::atomic<bool>* stop) override;
  std::string waiting_for() const override;
  Result<uint64_t> claim_term(uint64_t above) override;
  Status still_mine(uint64_t term) override;
  Status lease_held() const override;
  Result<LeaderInfo> leader() override;
  Status resign() override;

 private:
  // Having led since `revision`, under the keeper's lease.
  struct Leadership {
    Leadership(EtcdClient* client, const EtcdLease& lease, TimeNs asked, int64_t created)
        : keeper(client, lease, asked), revision(created) {}
    LeaseKeeper keeper;
    const int64_t revision;
  };
  // What etcd says at one moment.
  struct View {
    EtcdPair leader;  // revision 0: nobody
    uint64_t term = 0;
    LeaderInfo term_owner;
  };
  // What one attempt came to: `leads`, or who does.
  struct Attempt {
    bool leads = false;
    LeaderInfo other;
  };

  EtcdElection(EtcdElectionOptions options, std::unique_ptr<EtcdClient> client);
  Result<Attempt> try_to_lead();
  Result<Attempt> take_leader_key(const EtcdLease& lease, TimeNs asked);
  Status claim(const Leadership& mine, uint64_t term, View* seen);
  Result<View> read_view(const EtcdAnswer& answer) const;
  Status deposed_by(const View& view) const;
  std::shared_ptr<Leadership> leadership() const;
  // The same; fails if this process does not lead.
  Result<std::shared_ptr<Leadership>> leading() const;
  void set_waiting(std::string what);
  Candidate self() const;
  EtcdStep get_leader() const;
  EtcdStep get_last_term() const;
  std::string term_key(uint64_t term) const;

  const EtcdElectionOptions options_;
  const std::unique_ptr<EtcdClient> client_;
  const std::string leader_key_, terms_key_, terms_end_;
  mutable std::mutex mutex_;  // guards what follows
  Candidate self_;
  std::string waiting_;
  std::shared_ptr<Leadership> leadership_;
};

}  // namespace flux
