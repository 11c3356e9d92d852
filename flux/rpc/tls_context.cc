#include "flux/rpc/tls_context.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "flux/rpc/openssl_types.h"

namespace flux {
namespace {

constexpr size_t kRecordBytes = 16384;

// --- a BIO that never raises SIGPIPE -------------------------------------------------------------

int fd_of(BIO* bio) {
  return static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio)));
}

int bio_write(BIO* bio, const char* data, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t n = ::send(fd_of(bio), data, static_cast<size_t>(size), MSG_NOSIGNAL);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(n);
}

int bio_read(BIO* bio, char* data, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t n = ::recv(fd_of(bio), data, static_cast<size_t>(size), 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  return static_cast<int>(n);
}

long bio_control(BIO*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

OwnedBioMethod make_bio_method() {
  // Any number that OpenSSL itself does not use; its own supply of numbers is small.
  constexpr int kType = BIO_TYPE_SOURCE_SINK | 127;
  OwnedBioMethod method(BIO_meth_new(kType, "flux socket"));
  FLUX_CHECK(method != nullptr, "OpenSSL gives no memory");
  BIO_meth_set_write(method.get(), bio_write);
  BIO_meth_set_read(method.get(), bio_read);
  BIO_meth_set_ctrl(method.get(), bio_control);
  return method;
}

// --- a session -----------------------------------------------------------------------------------

class OpensslContext;

class OpensslSession final : public TlsSession {
 public:
  OpensslSession(std::shared_ptr<OpensslContext> context, OwnedSsl ssl, int fd, bool accepts)
      : context_(std::move(context)), ssl_(std::move(ssl)), fd_(fd), accepts_(accepts) {}

  IoResult handshake(Status* failure) override {
    if (accepts_ && !peeked_) {
      char first[4];
      const ssize_t n = ::recv(fd_, first, sizeof first, MSG_PEEK);
      if (n < 0 && errno == EAGAIN) return {IoOutcome::kWantRead, 0, true};
      peeked_ = true;
      plain_ = n == sizeof first && std::memcmp(first, "FLXR", sizeof first) == 0;
      if (plain_) {
        *failure = invalid("certificates (TLS) are needed to connect here");
        return {IoOutcome::kFailed, 0, true};
      }
    }
    ERR_clear_error();
    const int result = accepts_ ? SSL_accept(ssl_.get()) : SSL_connect(ssl_.get());
    if (result == 1) return {IoOutcome::kBytes, 0, false};
    return outcome(result, failure);
  }

  IoResult read(std::span<const iovec> parts, Status* failure) override {
    size_t total = 0;
    for (const iovec& part : parts) {
      size_t at = 0;
      while (at < part.iov_len) {
        size_t got = 0;
        ERR_clear_error();
        const int result = SSL_read_ex(ssl_.get(), static_cast<char*>(part.iov_base) + at,
                                       part.iov_len - at, &got);
        if (result != 1) {
          if (total == 0) return outcome(result, failure);
          // What stopped us comes again at the next try.
          const bool again = SSL_get_error(ssl_.get(), result) == SSL_ERROR_WANT_READ;
          return {IoOutcome::kBytes, total, again};
        }
        at += got;
        total += got;
      }
    }
    return {IoOutcome::kBytes, total, false};
  }

  IoResult write(std::span<const iovec> parts, Status* failure) override {
    size_t total = 0, at = 0;
    while (!parts.empty()) {
      const void* data = static_cast<char*>(parts[0].iov_base) + at;
      size_t size = std::min(parts[0].iov_len - at, kRecordBytes);
      if (size < kRecordBytes && parts.size() > 1) data = stage(parts, at, &size);
      size_t sent = 0;
      ERR_clear_error();
      const int result = SSL_write_ex(ssl_.get(), data, size, &sent);
      if (result != 1) {
        promised_ = size;
        if (total == 0) return outcome(result, failure);
        return {IoOutcome::kBytes, total, true};
      }
      promised_ = 0;
      total += sent;
      skip(&parts, &at, sent);
    }
    return {IoOutcome::kBytes, total, false};
  }

  size_t promised() const override { return promised_; }
  uint64_t take_copied() override { return std::exchange(copied_, 0); }
  bool peer_is_plain() const override { return plain_; }
  Result<PeerRole> peer_role() const override;

 private:
  // Small parts share a record: the one copy that TLS costs besides its own.
  const void* stage(std::span<const iovec> parts, size_t at, size_t* size) {
    staged_.resize(kRecordBytes);
    size_t used = 0;
    for (const iovec& part : parts) {
      const size_t n = std::min(part.iov_len - at, kRecordBytes - used);
      if (n > 0) std::memcpy(staged_.data() + used, static_cast<char*>(part.iov_base) + at, n);
      used += n;
      at = 0;
      if (used == kRecordBytes) break;
    }
    copied_ += used;
    *size = used;
    return staged_.data();
  }

  static void skip(std::span<const iovec>* parts, size_t* at, size_t bytes) {
    *at += bytes;
    while (!parts->empty() && *at >= parts->front().iov_len) {
      *at -= parts->front().iov_len;
      *parts = parts->subspan(1);
    }
  }

  IoResult outcome(int result, Status* failure) {
    const int number = errno;
    switch (SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_READ:
        return {IoOutcome::kWantRead, 0, true};
      case SSL_ERROR_WANT_WRITE:
        return {IoOutcome::kWantWrite, 0, true};
      case SSL_ERROR_ZERO_RETURN:
        return {IoOutcome::kEnd, 0, true};
      case SSL_ERROR_SYSCALL:
        if (ERR_peek_error() == 0) {
          if (number == 0) return {IoOutcome::kEnd, 0, true};
          *failure = Status(Code::kUnavailable, std::generic_category().message(number));
          return {IoOutcome::kFailed, 0, true};
        }
        break;
      default:
        break;
    }
    return explain(failure);
  }

  IoResult explain(Status* failure) {
    const long verdict = SSL_get_verify_result(ssl_.get());
    const int reason = ERR_GET_REASON(ERR_peek_last_error());
    if (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
      ERR_clear_error();
      return {IoOutcome::kEnd, 0, true};
    }
    const std::string text = openssl_failure();
    if (verdict != X509_V_OK) {
      *failure = invalid("the peer's certificate is not accepted: {}",
                         X509_verify_cert_error_string(verdict));
    } else if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) {
      *failure = invalid("the peer shows no certificate");
    } else if (text.find("alert") != std::string::npos) {
      *failure = invalid("the peer refuses our certificate ({})", text);
    } else if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST) {
      *failure = invalid("the peer does not use TLS; give both ends certificates, or neither");
    } else {
      *failure = invalid("TLS failed: {}", text);
    }
    return {IoOutcome::kFailed, 0, true};
  }

  std::shared_ptr<OpensslContext> context_;
  OwnedSsl ssl_;
  int fd_;
  bool accepts_;
  bool peeked_ = false;
  bool plain_ = false;
  size_t promised_ = 0;
  uint64_t copied_ = 0;
  std::vector<char> staged_;
};

Result<PeerRole> OpensslSession::peer_role() const {
  const OwnedCertificate certificate(SSL_get1_peer_certificate(ssl_.get()));
  if (!certificate) return invalid("the peer shows no certificate");
  const OpensslOwned<GENERAL_NAMES, GENERAL_NAMES_free> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* uri = name->d.uniformResourceIdentifier;
    const std::string_view text(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                                static_cast<size_t>(ASN1_STRING_length(uri)));
    for (uint32_t role = 0; role < kPeerRoles; ++role)
      if (text == fmt::format("flux:{}", peer_role_name(static_cast<PeerRole>(role))))
        return static_cast<PeerRole>(role);
  }
  return invalid("the peer's certificate names no role of flux (URI name flux:<role>)");
}

// --- a context -----------------------------------------------------------------------------------

class OpensslContext final : public TlsContext,
                             public std::enable_shared_from_this<OpensslContext> {
 public:
  Status open(const std::string& folder, PeerRole role, bool any_date);
  std::unique_ptr<TlsSession> connect(int fd) override { return session(fd, false); }
  std::unique_ptr<TlsSession> accept(int fd) override { return session(fd, true); }

 private:
  std::unique_ptr<TlsSession> session(int fd, bool accepts) {
    OwnedSsl ssl(SSL_new(context_.get()));
    BIO* bio = BIO_new(method_.get());
    FLUX_CHECK(ssl != nullptr && bio != nullptr, "OpenSSL gives no memory");
    BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(fd)));
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl.get(), bio, bio);
    return std::make_unique<OpensslSession>(shared_from_this(), std::move(ssl), fd, accepts);
  }

  OwnedBioMethod method_ = make_bio_method();
  OwnedSslContext context_;
};

Status unusable(const std::string& path) {
  return invalid("{}: {}; make certificates with `flux certs`", path, openssl_failure());
}

Status check_key_mode(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0)
    return invalid("{}: {}; make certificates with `flux certs`", path,
                   std::generic_category().message(errno));
  if ((found.st_mode & 077U) == 0) return Status::ok();
  return invalid("{}: others may read this secret key; run chmod 600 on it", path);
}

Status check_date(const SSL_CTX* context, const std::string& path) {
  const X509* certificate = SSL_CTX_get0_certificate(context);
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) <= 0)
    return invalid("{}: the certificate has expired; make new ones with `flux certs`", path);
  if (X509_cmp_current_time(X509_get0_notBefore(certificate)) >= 0)
    return invalid("{}: the certificate is not valid yet; look at this host's clock", path);
  return Status::ok();
}

Status OpensslContext::open(const std::string& folder, PeerRole role, bool any_date) {
  const std::string base = fmt::format("{}/{}", folder, peer_role_name(role));
  const std::string authority = folder + "/ca.pem", own = base + ".pem", key = base + ".key";
  FLUX_RETURN_IF_ERROR(check_key_mode(key));
  ERR_clear_error();
  context_.reset(SSL_CTX_new(TLS_method()));
  FLUX_CHECK(context_ != nullptr, "OpenSSL gives no memory");
  SSL_CTX* c = context_.get();
  SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION);
  SSL_CTX_set_max_proto_version(c, TLS1_3_VERSION);
  SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                          SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(c, 0);
  SSL_CTX_set_verify(c, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  if (SSL_CTX_load_verify_locations(c, authority.c_str(), nullptr) != 1) return unusable(authority);
  if (SSL_CTX_use_certificate_file(c, own.c_str(), SSL_FILETYPE_PEM) != 1) return unusable(own);
  if (SSL_CTX_use_PrivateKey_file(c, key.c_str(), SSL_FILETYPE_PEM) != 1) return unusable(key);
  if (SSL_CTX_check_private_key(c) != 1) return unusable(key);
  return any_date ? Status::ok() : check_date(c, own);
}

}  // namespace

Result<std::shared_ptr<TlsContext>> TlsContext::load(const std::string& folder, PeerRole role,
                                                     bool any_date) {
  auto context = std::make_shared<OpensslContext>();
  FLUX_RETURN_IF_ERROR(context->open(folder, role, any_date));
  return std::shared_ptr<TlsContext>(std::move(context));
}

}  // namespace flux
