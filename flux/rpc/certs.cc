#include "flux/rpc/certs.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flux/rpc/openssl_types.h"

namespace flux {
namespace {

constexpr int64_t kDaysMax = 36500;
constexpr size_t kJobMax = 64;  // an X.509 bound

struct Identity {
  OwnedKey key;
  OwnedCertificate certificate;
};

Status openssl_error(const char* what) {
  return error(Code::kIo, "cannot {}: {}", what, openssl_failure());
}

bool add_name(X509_NAME* name, const char* field, const std::string& value) {
  return X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(value.data()),
                                    static_cast<int>(value.size()), -1, 0) == 1;
}

bool add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const OpensslOwned<X509_EXTENSION, X509_EXTENSION_free> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool set_serial(X509* certificate) {
  unsigned char bytes[16];
  if (RAND_bytes(bytes, sizeof bytes) != 1) return false;
  bytes[0] &= 0x7f;
  bytes[0] |= 0x01;
  const OpensslOwned<BIGNUM, BN_free> number(BN_bin2bn(bytes, sizeof bytes, nullptr));
  return number && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

// An empty certificate with key, names and dates.
Result<Identity> begin_certificate(const CertificateOptions& o, const std::string& unit) {
  Identity made{OwnedKey(EVP_EC_gen("P-256")), OwnedCertificate(X509_new())};
  if (!made.key || !made.certificate) return openssl_error("make a key");
  X509* c = made.certificate.get();
  const int64_t ends_s = o.starts_s + o.days * 86400;
  const bool good = X509_set_version(c, X509_VERSION_3) == 1 && set_serial(c) &&
                    X509_gmtime_adj(X509_getm_notBefore(c), o.starts_s) != nullptr &&
                    X509_gmtime_adj(X509_getm_notAfter(c), ends_s) != nullptr &&
                    X509_set_pubkey(c, made.key.get()) == 1 &&
                    add_name(X509_get_subject_name(c), "O", o.job) &&
                    add_name(X509_get_subject_name(c), "OU", unit) &&
                    add_name(X509_get_subject_name(c), "CN", "flux " + unit);
  if (!good) return openssl_error("fill in a certificate");
  return made;
}

Status sign(X509* certificate, const Identity& authority) {
  if (X509_set_issuer_name(certificate, X509_get_subject_name(authority.certificate.get())) == 1 &&
      X509_sign(certificate, authority.key.get(), EVP_sha256()) != 0)
    return Status::ok();
  return openssl_error("sign a certificate");
}

Result<Identity> make_authority(const CertificateOptions& options) {
  FLUX_ASSIGN_OR_RETURN(Identity made, begin_certificate(options, "authority"));
  X509* c = made.certificate.get();
  if (!add_extension(c, c, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !add_extension(c, c, NID_key_usage, "critical,keyCertSign") ||
      !add_extension(c, c, NID_subject_key_identifier, "hash"))
    return openssl_error("extend a certificate");
  FLUX_RETURN_IF_ERROR(sign(c, made));
  return made;
}

Result<Identity> make_member(const CertificateOptions& options, const Identity& authority,
                             const std::string& role) {
  FLUX_ASSIGN_OR_RETURN(Identity made, begin_certificate(options, role));
  X509* c = made.certificate.get();
  X509* issuer = authority.certificate.get();
  if (!add_extension(c, issuer, NID_basic_constraints, "critical,CA:FALSE") ||
      !add_extension(c, issuer, NID_key_usage, "critical,digitalSignature") ||
      !add_extension(c, issuer, NID_ext_key_usage, "serverAuth,clientAuth") ||
      !add_extension(c, issuer, NID_subject_alt_name, "URI:flux:" + role) ||
      !add_extension(c, issuer, NID_authority_key_identifier, "keyid"))
    return openssl_error("extend a certificate");
  FLUX_RETURN_IF_ERROR(sign(c, authority));
  return made;
}

Status write_file(const std::string& path, BIO* text) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(text, &data);
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0 && errno == EEXIST)
    return invalid("{} is there already; remove it or choose another folder", path);
  if (fd < 0) return errno_status(path, errno);
  bool good = true;
  for (long at = 0; good && at < size;) {
    const ssize_t n = ::write(fd, data + at, static_cast<size_t>(size - at));
    good = n > 0;
    at += n;
  }
  const int number = errno;
  if (::close(fd) != 0 || !good) return errno_status(path, number);
  return Status::ok();
}

Status write_certificate(const std::string& path, X509* certificate) {
  const OwnedBio text(BIO_new(BIO_s_mem()));
  if (!text || PEM_write_bio_X509(text.get(), certificate) != 1)
    return openssl_error("write a certificate");
  return write_file(path, text.get());
}

Status write_key(const std::string& path, EVP_PKEY* key) {
  const OwnedBio text(BIO_new(BIO_s_secmem()));
  if (!text ||
      PEM_write_bio_PrivateKey(text.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return openssl_error("write a key");
  return write_file(path, text.get());
}

Status check_options(const std::string& folder, const CertificateOptions& options) {
  if (options.days < 1 || options.days > kDaysMax)
    return invalid("certificates for {} days; give 1 to {}", options.days, kDaysMax);
  if (options.job.empty() || options.job.size() > kJobMax)
    return invalid("the job's name in certificates has 1 to {} bytes, not {}", kJobMax,
                   options.job.size());
  if (options.roles.empty()) return invalid("certificates for no role");
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return errno_status(folder, errno);
  return Status::ok();
}

}  // namespace

Status make_certificates(const std::string& folder, const CertificateOptions& options) {
  FLUX_RETURN_IF_ERROR(check_options(folder, options));
  ERR_clear_error();
  FLUX_ASSIGN_OR_RETURN(const Identity authority, make_authority(options));
  FLUX_RETURN_IF_ERROR(write_certificate(folder + "/ca.pem", authority.certificate.get()));
  for (const PeerRole role : options.roles) {
    const std::string name = peer_role_name(role);
    FLUX_ASSIGN_OR_RETURN(const Identity made, make_member(options, authority, name));
    FLUX_RETURN_IF_ERROR(
        write_certificate(fmt::format("{}/{}.pem", folder, name), made.certificate.get()));
    FLUX_RETURN_IF_ERROR(write_key(fmt::format("{}/{}.key", folder, name), made.key.get()));
  }
  return Status::ok();
}

}  // namespace flux
