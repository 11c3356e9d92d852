#include "flux/election/endpoints.h"

#include <gtest/gtest.h>

namespace flux {
namespace {

std::string refused(std::string_view text) {
  const auto parsed = parse_endpoints(text);
  EXPECT_FALSE(parsed.is_ok()) << text;
  EXPECT_EQ(parsed.status().code(), Code::kInvalid);
  return parsed.status().message();
}

TEST(Endpoints, AreReadAndWritten) {
  const auto parsed = parse_endpoints(
      "http://a:2379, http://10.0.0.2:1/,http://[::1]:65535,http://etcd-3.example.com");
  ASSERT_TRUE(parsed.is_ok()) << parsed.status().message();
  const std::vector<EtcdEndpoint> want = {{false, "a", 2379},
                                          {false, "10.0.0.2", 1},
                                          {false, "::1", 65535},
                                          {false, "etcd-3.example.com", 2379}};
  EXPECT_EQ(parsed.value(), want);
  EXPECT_EQ(parsed.value()[2].url(), "http://[::1]:65535");
  const auto secure = parse_endpoints("https://a,https://b:7");
  ASSERT_TRUE(secure.is_ok());
  EXPECT_EQ(secure.value()[1], (EtcdEndpoint{true, "b", 7}));
  EXPECT_EQ(secure.value()[0].url(), "https://a:2379");
}

TEST(Endpoints, AreRefusedWithTheReason) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"", "'': it is empty"},
      {"http://a,", "'': it is empty"},
      {"a:2379", "'a:2379': it does not begin with http://"},
      {"http://a,b", "'b': it does not begin with http://"},
      {"ftp://a", "'ftp' is not spoken"},
      {"HTTP://a", "'HTTP' is not spoken"},
      {"http://", "the host is missing"},
      {"http://:2379", "the host is missing"},
      {"http://[]:1", "the host is missing"},
      {"http://[::1:1", "a bracket is not closed"},
      {"http://[::1]x", "only a port may follow"},
      {"http://::1:2379", "the host is missing"},
      {"http://fe80::1", "an IPv6 host needs brackets"},
      {"http://a:", "the port is not a number from 1 to 65535"},
      {"http://a:0", "the port is not"},
      {"http://a:65536", "the port is not"},
      {"http://a:-1", "the port is not"},
      {"http://a:12x", "the port is not"},
      {"http://a:2379/v3", "nothing may follow the port"},
      {"http://a?x", "nothing may follow the port"},
      {"http://user:secret@a", "password are not supported"},
      {"http://a b", "the host is not a name or number"},
      {std::string("http://a\0b", 10), "the host is not a name or number"},
      {"http://" + std::string(254, 'a'), "the host is not a name or number"},
      {"http://a,http://a:2379", "'http://a:2379' is given twice"},
      {"http://a,https://b", "either all speak TLS (https://) or none"},
  };
  for (const auto& [text, words] : table)
    EXPECT_NE(refused(text).find(words), std::string::npos) << text << " -> " << refused(text);
  std::string many = "http://h0";
  for (int i = 1; i < 17; ++i) many += fmt::format(",http://h{}", i);
  EXPECT_NE(refused(many).find("more than 16"), std::string::npos);
}

}  // namespace
}  // namespace flux
