#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/env.h"
#include "slotfile_format.h"

namespace fjord::slotfile {

/// Errors: NotFound, Corruption, NotImplemented, IoError.
Result<FileHeader> read_file_header(const RandomAccessFile& file, const std::string& path);

/// The metadata list of a slotfile as it is found on disk, sorted into what can be trusted and what cannot.
class MetadataList {
 public:
  struct Valid {
    std::uint64_t index;
    MetaEntry entry;
  };
  struct Bad {
    std::uint64_t index;
    GlobalId gid;  ///< As far as it can be read.
    bool torn;     ///< Looks like the remains of an interrupted write.
  };

  /// `bytes` is the list, shorter if the file ends within it.
  MetadataList(const FileHeader& header, std::string_view bytes);
  /// Errors: IoError.
  static Result<MetadataList> read(const RandomAccessFile& file, const FileHeader& header);

  const std::vector<Valid>& valid() const { return valid_; }
  const std::vector<Bad>& bad() const { return bad_; }
  /// Entries with one flipped bit that was found; they are among valid().
  std::uint64_t repaired() const { return repaired_; }
  /// Torn ones behind everything valid: never acknowledged, unless the power failed.
  std::uint64_t torn() const { return torn_; }
  /// Entries that may have been acknowledged and are not valid: all others that are bad, and empty ones before a valid
  /// one.
  std::uint64_t lost() const { return lost_; }
  /// The first index that may be written: behind everything valid or lost.
  std::uint64_t used() const { return used_; }
  /// Ends of what the valid entries use of the blobs.
  std::uint64_t header_bytes_used() const { return header_bytes_used_; }
  std::uint64_t body_bytes_used() const { return body_bytes_used_; }

  /// The newest valid entry of each id. If a bad entry that is not torn still shows an id, older entries of it are left
  /// out: they were replaced by what is lost, and an old version must not come back.
  std::vector<MetaEntry> newest() const;

 private:
  void add_valid(std::uint64_t index, const MetaEntry& entry);

  std::vector<Valid> valid_;
  std::vector<Bad> bad_;
  std::uint64_t repaired_ = 0;
  std::uint64_t torn_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t used_ = 0;
  std::uint64_t header_bytes_used_ = 0;
  std::uint64_t body_bytes_used_ = 0;
};

}  // namespace fjord::slotfile
