//! Keys and certificates of a control plane, valid for 127.0.0.1 only.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

/// The files of a control plane's keys, all in one directory.
#[derive(Debug, Clone)]
pub(crate) struct Pki {
    dir: PathBuf,
}

impl Pki {
    /// Returns the files in `dir`. [`Pki::create`] has written them there, for this control plane or for the prepared
    /// copy.
    pub(crate) fn at(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    /// Creates new keys: an authority, a server certificate for 127.0.0.1 and a signing key for tokens.
    pub(crate) fn create(dir: &Path) -> Result<Self> {
        let this = Self::at(dir);
        fs::create_dir_all(dir).with_context(|| format!("{} cannot be made", dir.display()))?;

        issue(&this.authority(), &this.server_certificate(), &this.server_key())?;
        let tokens = KeyPair::generate()?;
        fs::write(this.token_key(), tokens.serialize_pem())?;
        fs::write(this.token_public_key(), tokens.public_key_pem())?;
        Ok(this)
    }

    pub(crate) fn authority(&self) -> PathBuf {
        self.dir.join("ca.crt")
    }

    pub(crate) fn server_certificate(&self) -> PathBuf {
        self.dir.join("server.crt")
    }

    pub(crate) fn server_key(&self) -> PathBuf {
        self.dir.join("server.key")
    }

    pub(crate) fn token_key(&self) -> PathBuf {
        self.dir.join("tokens.key")
    }

    pub(crate) fn token_public_key(&self) -> PathBuf {
        self.dir.join("tokens.pub")
    }
}

/// Writes a certificate for 127.0.0.1 with its key. It is signed by a new authority, whose certificate is written too.
pub fn issue(authority_file: &Path, certificate_file: &Path, key_file: &Path) -> Result<()> {
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.distinguished_name.push(DnType::CommonName, "control-plane");
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let authority_key = KeyPair::generate()?;
    let authority_certificate = authority.self_signed(&authority_key)?;
    let issuer = Issuer::new(authority, authority_key);

    let mut server = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()])?;
    server.distinguished_name.push(DnType::CommonName, "127.0.0.1");
    server.use_authority_key_identifier_extension = true;
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let server_key = KeyPair::generate()?;
    let server_certificate = server.signed_by(&server_key, &issuer)?;

    fs::write(authority_file, authority_certificate.pem())?;
    fs::write(certificate_file, server_certificate.pem())?;
    fs::write(key_file, server_key.serialize_pem())?;
    Ok(())
}
