// `flux certs`: a job's own authority and a certificate for each role.
#include "flux/main/commands.h"
#include "flux/rpc/certs.h"

namespace flux {

int certs_command(const CertsArguments& arguments) {
  CertificateOptions options;
  options.job = arguments.job;
  options.days = arguments.days;
  const Status made = make_certificates(arguments.out, options);
  if (!made.is_ok()) return report(made);
  fmt::print(
      "{}: certificates of job {}, good for {} days\n"
      "copy the folder to every host of the job, readable by its user only, and start the roles "
      "with --certs\n",
      arguments.out, arguments.job, arguments.days);
  return 0;
}

}  // namespace flux
