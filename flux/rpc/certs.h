// Certificates of one job: an authority of its own and a certificate and key for each role, which
// is what rpc/tls_context.h reads (command `flux certs`). EC P-256; files of mode 0600. The
// authority's key is thrown away, so nobody can make another certificate; for a change, make all
// anew. Pure but for the files it writes. Failure: kInvalid or kIo with the path; never overwrites.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/rpc/service.h"

namespace flux {

struct CertificateOptions {
  std::string job = "flux";  // for people: the organisation's name in the certificates
  std::vector<PeerRole> roles = {PeerRole::kAdmin, PeerRole::kCoordinator, PeerRole::kServer,
                                 PeerRole::kWorker, PeerRole::kViewer};
  int64_t days = 365;
  int64_t starts_s = -3600;  // from now; a little earlier, since clocks differ
};

// Creates the folder (mode 0700) and in it ca.pem, <role>.pem, <role>.key.
Status make_certificates(const std::string& folder, const CertificateOptions& options);

}  // namespace flux
