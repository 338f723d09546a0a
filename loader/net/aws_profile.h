// The files that the AWS command line keeps its settings in: ~/.aws/config and ~/.aws/credentials.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace loader::net {

// Settings by name. Nested ones have both names: "s3.addressing_style".
using AwsSection = std::map<std::string, std::string>;
// Profiles by name; sections of services as "services NAME".
using AwsSections = std::map<std::string, AwsSection>;

// In the file of settings a profile's section is called "profile NAME", in the file of credentials "NAME". Lines that
// mean nothing are skipped.
void parse_aws_file(std::string_view text, bool is_credentials, AwsSections& sections);

}  // namespace loader::net
