#pragma once

#include <memory>
#include <string>

#include "fjord/common/check.h"
#include "fjord/document/document_type.h"

namespace fjord::testing {

/// One type with a field of each kind, for fuzz targets that need types to read their input.
inline const std::shared_ptr<const DocumentTypeRepo>& fuzz_types() {
  static const std::shared_ptr<const DocumentTypeRepo> kTypes = [] {
    const std::string schema =
        "document item {\n"
        "  struct pair { field name type string {} field weight type double {} }\n"
        "  field title type string { header }\n"
        "  field size type int { header }\n"
        "  field big type long { header }\n"
        "  field price type double { header }\n"
        "  field flag type bool { header }\n"
        "  field tags type array<string> { body }\n"
        "  field counts type weightedset<string> { body }\n"
        "  field pairs type array<pair> { body }\n"
        "  field names type map<string, int> { body }\n"
        "  field bytes type raw { body }\n"
        "}\n";
    auto types = DocumentTypeRepo::build(std::span(&schema, 1));
    FJORD_CHECK_MSG(types.has_value(), types.status().to_string());
    return *types;
  }();
  return kTypes;
}

}  // namespace fjord::testing
