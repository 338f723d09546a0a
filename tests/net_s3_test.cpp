// Tests signatures and settings of S3 without a server. The signatures are the examples of Amazon's documentation.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "aws_credentials.h"
#include "aws_profile.h"
#include "aws_sign.h"
#include "s3_config.h"

namespace {

using namespace loader;
using namespace loader::net;

const AwsKeys kKeys{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
constexpr time_t kDay = 1369353600;  // 2013-05-24

std::string signature(Request request) {
  sign(request, kKeys, "us-east-1", kDay);
  const std::string& line = request.headers.back();
  return line.substr(line.rfind('=') + 1);
}

Request request(const char* method, const char* path, const char* query) {
  Request made;
  made.method = method;
  made.target = {"https://examplebucket.s3.amazonaws.com", path, query};
  return made;
}

TEST(Sign, ExamplesOfAmazon) {
  Request range = request("GET", "/test.txt", "");
  range.headers = {"Range: bytes=0-9"};
  EXPECT_EQ(signature(range), "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  EXPECT_EQ(signature(request("GET", "/", "lifecycle")),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  EXPECT_EQ(signature(request("GET", "/", "prefix=J&max-keys=2")),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
  Request put = request("PUT", "/test%24file.text", "");
  put.headers = {"Date: Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class: REDUCED_REDUNDANCY"};
  put.body_hash = sha256("Welcome to Amazon S3.");
  EXPECT_EQ(signature(put), "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

TEST(Sign, SendsTheToken) {
  Request made = request("GET", "/", "");
  sign(made, {"id", "secret", "token"}, "eu-west-1", kDay);
  EXPECT_NE(std::find(made.headers.begin(), made.headers.end(), "x-amz-security-token: token"), made.headers.end());
  EXPECT_NE(made.headers.back().find("Credential=id/20130524/eu-west-1/s3/aws4_request,SignedHeaders="
                                     "host;x-amz-content-sha256;x-amz-date;x-amz-security-token,"),
            std::string::npos);
}

TEST(Profile, FilesAreParsed) {
  AwsSections sections;
  parse_aws_file(
      "# comment\n[default]\nregion = eu-west-1\r\n[profile a b]\ns3 =\n  addressing_style = path\n"
      "  endpoint_url=http://x\noutput = json\n[profile 'q']\nregion=r\n[services mine]\ns3 = \n\tendpoint_url = y\n"
      "[sso-session z]\nregion = no\n[other]\nregion = no\n nonsense\n[",
      false, sections);
  parse_aws_file("[a b]\naws_access_key_id = ID\naws_secret_access_key = a=b/+\n; x\n", true, sections);
  EXPECT_EQ(sections["default"]["region"], "eu-west-1");
  EXPECT_EQ(sections["a b"]["s3.addressing_style"], "path");
  EXPECT_EQ(sections["a b"]["s3.endpoint_url"], "http://x");
  EXPECT_EQ(sections["a b"]["output"], "json");
  EXPECT_EQ(sections["a b"]["aws_secret_access_key"], "a=b/+");
  EXPECT_EQ(sections["q"]["region"], "r");
  EXPECT_EQ(sections["services mine"]["s3.endpoint_url"], "y");
  EXPECT_FALSE(sections.contains("z") || sections.contains("other"));
}

TEST(Keys, OfMachinesAreParsed) {
  AwsKeys keys;
  time_t expires = 0;
  EXPECT_TRUE(parse_remote_keys(R"({"Code":"Success","AccessKeyId":"i","SecretAccessKey":"s","Token":"t",)"
                                R"("Expiration":"2013-05-24T00:00:07Z","More":[1]})",
                                keys, expires));
  EXPECT_EQ(keys.id + keys.secret + keys.token, "ist");
  EXPECT_EQ(expires, kDay + 7);
  for (const char* const wrong : {"", "{}", "[]", R"({"AccessKeyId":"i"})", R"({"AccessKeyId":)"}) {
    EXPECT_FALSE(parse_remote_keys(wrong, keys, expires)) << wrong;
  }
}

// Each test has an environment of its own.
class Config : public testing::Test {
 protected:
  void SetUp() override {
    for (char** entry = environ; *entry != nullptr;) {
      const std::string name = std::string(*entry).substr(0, std::string(*entry).find('='));
      if (name.starts_with("AWS_") && unsetenv(name.c_str()) == 0) {
        entry = environ;
      } else {
        ++entry;
      }
    }
    std::string pattern = std::filesystem::temp_directory_path() / "net_test_XXXXXX";
    home_ = mkdtemp(pattern.data());
    setenv("HOME", home_.c_str(), 1);
    std::filesystem::create_directory(home_ / ".aws");
  }
  void TearDown() override { std::filesystem::remove_all(home_); }

  void write(const char* name, const std::string& text) const { std::ofstream(home_ / ".aws" / name) << text; }
  static S3Config configured(const std::string& url) {
    S3Config config;
    const StoreFault fault = configure_s3(url, {}, config);
    EXPECT_FALSE(fault) << fault.reason;
    return config;
  }
  static std::string refusal(const std::string& url) {
    S3Config config;
    const StoreFault fault = configure_s3(url, {}, config);
    EXPECT_TRUE(fault) << url;
    return fault.reason;
  }

  std::filesystem::path home_;
};

TEST_F(Config, FindsTheBucket) {
  S3Config config = configured("s3://bucket/some prefix/");
  EXPECT_EQ(config.bucket, "bucket");
  EXPECT_EQ(config.prefix, "some prefix");
  EXPECT_EQ(config.base.url(), "https://bucket.s3.us-east-1.amazonaws.com/");
  EXPECT_FALSE(config.keys);
  EXPECT_EQ(configured("s3://a.b?region=eu-north-1").base.url(), "https://s3.eu-north-1.amazonaws.com/a.b/");
  EXPECT_EQ(configured("s3://Bucket/").base.url(), "https://s3.us-east-1.amazonaws.com/Bucket/");
  EXPECT_EQ(configured("s3://b?region=cn-north-1").base.url(), "https://b.s3.cn-north-1.amazonaws.com.cn/");
  EXPECT_EQ(configured("s3://b?addressing_style=path").base.url(), "https://s3.us-east-1.amazonaws.com/b/");
  EXPECT_EQ(configured("s3://b?endpoint_url=http://127.0.0.1:9000/x").base.url(), "http://127.0.0.1:9000/x/b/");
  EXPECT_EQ(configured("s3://b?endpoint_url=http%3A%2F%2Fh&addressing_style=virtual").base.url(), "http://b.h/");
  EXPECT_TRUE(configured("s3://b?anonymous=true").is_anonymous);
}

TEST_F(Config, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(refusal("s3://b?endpoint=x"), "the URL has an unknown parameter: endpoint");
  EXPECT_EQ(refusal("s3://b?anonymous=yes"), "anonymous must be true or false");
  EXPECT_EQ(refusal("s3://b?region=a/b"), "the region is malformed");
  EXPECT_EQ(refusal("s3://b?addressing_style=x"), "addressing_style must be auto, path or virtual");
  for (const char* const url : {"s3://", "s3:///key", "s3://b@c/", "s3://a:b/", "s3://b%2f/", "s3://.b/"}) {
    EXPECT_EQ(refusal(url), "the URL names no bucket: s3://BUCKET/PREFIX");
  }
  const std::string secret = refusal("s3://b?endpoint_url=http://u:secret@h/");
  EXPECT_EQ(secret, "endpoint_url must have neither a user nor a query");
  (void)refusal("s3://b?endpoint_url=ftp://h/");
  (void)refusal("s3://b?endpoint_url=%zz");
  (void)refusal("s3://b?profile=missing");
}

TEST_F(Config, FilesAndEnvironment) {
  write("config",
        "[default]\nregion = r-file\nendpoint_url = http://file\n[profile p]\nregion = r-p\nservices = x\n"
        "s3 =\n  addressing_style = virtual\n[services x]\ns3 =\n  endpoint_url = http://services\n"
        "[profile sso]\nsso_session = z\n");
  write("credentials",
        "[default]\naws_access_key_id = I\naws_secret_access_key = S\n"
        "[p]\naws_access_key_id = PI\naws_secret_access_key = PS\naws_session_token = PT\n");
  S3Config config = configured("s3://b");
  EXPECT_EQ(config.keys.id, "I");
  EXPECT_EQ(config.region, "r-file");
  EXPECT_EQ(config.base.url(), "http://file/b/");
  config = configured("s3://b?profile=p");
  EXPECT_EQ(config.keys.token, "PT");
  EXPECT_EQ(config.base.url(), "http://b.services/");

  setenv("AWS_ACCESS_KEY_ID", "EI", 1);
  EXPECT_NE(refusal("s3://b").find("AWS_SECRET_ACCESS_KEY"), std::string::npos);
  setenv("AWS_SECRET_ACCESS_KEY", "ES", 1);
  setenv("AWS_PROFILE", "p", 1);
  setenv("AWS_DEFAULT_REGION", "r-default", 1);
  setenv("AWS_ENDPOINT_URL", "http://all", 1);
  config = configured("s3://b");
  EXPECT_EQ(config.keys.id, "EI");
  EXPECT_EQ(config.region, "r-default");
  EXPECT_EQ(config.base.url(), "http://b.all/");
  setenv("AWS_REGION", "r-env", 1);
  setenv("AWS_ENDPOINT_URL_S3", "http://s3", 1);
  config = configured("s3://b?profile=p&addressing_style=path");
  EXPECT_EQ(config.keys.id, "PI");  // a profile in the URL is stronger than the environment
  EXPECT_EQ(config.region, "r-env");
  EXPECT_EQ(config.base.url(), "http://s3/b/");
  EXPECT_NE(refusal("s3://b?profile=sso").find("sso_session"), std::string::npos);
  EXPECT_FALSE(configured("s3://b?profile=sso&anonymous=true").keys);
}

}  // namespace
