//! A fresh PostgreSQL data folder, made once and copied: `initdb` takes a second, a copy a few milliseconds.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::folder;
use crate::process::User;
use crate::programs::target;

/// Fills `data` with a fresh cluster that `user` owns.
pub(crate) fn fresh(bin: &Path, data: &Path, user: Option<User>) -> anyhow::Result<()> {
    let template = template(bin, user)?;
    copy(&template, data, user)?;
    fs::set_permissions(data, fs::Permissions::from_mode(0o700))?;
    Ok(())
}

fn template(bin: &Path, user: Option<User>) -> anyhow::Result<PathBuf> {
    let version = Command::new(bin.join("postgres")).arg("--version").output().context("postgres could not be run")?;
    let version: String = String::from_utf8_lossy(&version.stdout).chars().filter(char::is_ascii_alphanumeric).collect();
    let folder = target().join("testbed");
    let template = folder.join(&version);
    if template.is_dir() {
        return Ok(template);
    }
    fs::create_dir_all(&folder)?;
    // Made where the server's user may write, and moved into place whole: another process may be doing the same.
    let made = folder::fresh()?;
    let data = made.path().join("data");
    initdb(bin, made.path(), &data, user)?;
    let partial = tempfile::tempdir_in(&folder)?.keep();
    copy(&data, &partial, None)?;
    if fs::rename(&partial, &template).is_err() {
        fs::remove_dir_all(&partial)?;
    }
    if !template.is_dir() {
        bail!("{} could not be made", template.display());
    }
    Ok(template)
}

fn initdb(bin: &Path, parent: &Path, data: &Path, user: Option<User>) -> anyhow::Result<()> {
    let mut command = match user {
        Some(User { uid, gid }) => {
            chown(parent, Some(uid), Some(gid))?;
            let mut command = Command::new("setpriv");
            command.args([format!("--reuid={uid}"), format!("--regid={gid}"), "--clear-groups".to_owned(), "--".to_owned()]);
            command.arg(bin.join("initdb"));
            command
        }
        None => Command::new(bin.join("initdb")),
    };
    command.current_dir("/").arg("-D").arg(data);
    command.args(["-U", "lockgate", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--wal-segsize=4"]);
    let output = command.output().context("initdb could not be run")?;
    if !output.status.success() {
        bail!("initdb failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

fn copy(from: &Path, to: &Path, user: Option<User>) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    if let Some(User { uid, gid }) = user {
        chown(to, Some(uid), Some(gid))?;
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target, user)?;
            continue;
        }
        fs::copy(entry.path(), &target)?;
        if let Some(User { uid, gid }) = user {
            chown(&target, Some(uid), Some(gid))?;
        }
    }
    Ok(())
}
