#pragma once

#include <string>

#include "fjord/common/result.h"

namespace fjord {

/// Creates a missing folder with mode 0700. Closes an existing one of this user to others, if those could only read it,
/// or if it is empty and has the mode 1777 of a new file system.
///
/// Errors: InvalidArgument if the folder, a link that the path is, or the folder above belongs to another user, or if
/// other users can change the folder or, without the sticky bit, the one above: what is in it may not be this user's.
/// IoError.
Status make_private_folder(const std::string& path);

/// Checks the same of an existing folder, which others may read, and changes nothing. Errors: as above.
Status check_own_folder(const std::string& path);

/// Checks that a file is a regular one of this user without other names, which others cannot change. `file` is an open
/// descriptor, `path` its name in messages. Errors: InvalidArgument; IoError.
Status check_own_file(int file, const std::string& path);

}  // namespace fjord
