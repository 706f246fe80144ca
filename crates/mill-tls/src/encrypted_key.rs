//! Private keys that a password encrypts: PKCS #8 (RFC 5958, RFC 8018), and OpenSSL's form before it, a text of RFC 1421
//! with `Proc-Type` and `DEK-Info`.

use crate::certificate::CertificateError;
use cbc::Decryptor;
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockCipher, BlockDecryptMut, KeyInit, KeyIvInit};
use md5::{Digest, Md5};
use pkcs8::{EncryptedPrivateKeyInfo, SecretDocument};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};

/// Opens the key in a text by the first of these passwords that does; `None`: no encrypted key stands there.
pub(crate) fn open<'a>(
    text: &str,
    passwords: impl IntoIterator<Item = &'a [u8]>,
) -> Option<Result<PrivateKeyDer<'static>, CertificateError>> {
    if let Some(at) = text.find(OLD_MARK) {
        return Some(open_old(text, at, passwords));
    }
    let start = text.find(PKCS8_BEGIN)?;
    Some(open_pkcs8(text.get(start..).unwrap_or_default(), passwords))
}

fn open_pkcs8<'a>(
    text: &str,
    passwords: impl IntoIterator<Item = &'a [u8]>,
) -> Result<PrivateKeyDer<'static>, CertificateError> {
    let end = text.find(PKCS8_END).map(|end| end + PKCS8_END.len());
    let (_, sealed) = SecretDocument::from_pem(text.get(..end.unwrap_or(0)).unwrap_or_default())
        .map_err(|_| CertificateError::Encrypted)?;
    let sealed = EncryptedPrivateKeyInfo::try_from(sealed.as_bytes())
        .map_err(|_| CertificateError::Encrypted)?;
    let mut opened = passwords
        .into_iter()
        .filter_map(|word| sealed.decrypt(word).ok());
    let opened = opened.next().ok_or(CertificateError::Encrypted)?;
    let der = PrivatePkcs8KeyDer::from(opened.as_bytes().to_vec());
    Ok(PrivateKeyDer::Pkcs8(der))
}

/// `mark` is where `Proc-Type` stands, behind the line that begins the key.
fn open_old<'a>(
    text: &str,
    mark: usize,
    passwords: impl IntoIterator<Item = &'a [u8]>,
) -> Result<PrivateKeyDer<'static>, CertificateError> {
    let broken = || CertificateError::BrokenEncryption;
    let (before, behind) = text.split_at_checked(mark).ok_or_else(broken)?;
    let begin = before.lines().next_back().ok_or_else(broken)?.trim();
    let mut lines = behind.lines().map(str::trim);
    let fields: Vec<&str> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    let (cipher, vector) = fields
        .iter()
        .find_map(|field| field.strip_prefix("DEK-Info:"))
        .and_then(|value| value.split_once(','))
        .ok_or_else(broken)?;
    let unknown = || CertificateError::UnknownCipher(cipher.trim().to_owned());
    let cipher = Cipher::of_name(cipher.trim()).ok_or_else(unknown)?;
    let vector = hex(vector.trim())
        .filter(|vector| vector.len() == cipher.vector_bytes())
        .ok_or_else(broken)?;
    // The same without the fields, which PEM as it is today (RFC 7468) does not have.
    let mut plain = String::from(begin);
    for line in lines {
        plain.push('\n');
        plain.push_str(line);
        if line.starts_with("-----END") {
            break;
        }
    }
    plain.push('\n');
    let sealed = PrivateKeyDer::from_pem_slice(plain.as_bytes()).map_err(CertificateError::Key)?;
    let opened = passwords.into_iter().find_map(|password| {
        let key = key_of(password, &vector, cipher.key_bytes());
        let opened = cipher.open(&key, &vector, sealed.secret_der())?;
        is_sequence(&opened).then_some(opened)
    });
    let opened = opened.ok_or(CertificateError::Encrypted)?;
    Ok(match sealed {
        PrivateKeyDer::Pkcs1(_) => PrivateKeyDer::Pkcs1(PrivatePkcs1KeyDer::from(opened)),
        PrivateKeyDer::Sec1(_) => PrivateKeyDer::Sec1(PrivateSec1KeyDer::from(opened)),
        _ => PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(opened)),
    })
}

/// Ciphers of keys in the old form, all with blocks that are chained (CBC).
#[derive(Clone, Copy)]
enum Cipher {
    Aes128,
    Aes192,
    Aes256,
    TripleDes,
    Des,
}

impl Cipher {
    fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "AES-128-CBC" => Self::Aes128,
            "AES-192-CBC" => Self::Aes192,
            "AES-256-CBC" => Self::Aes256,
            "DES-EDE3-CBC" => Self::TripleDes,
            "DES-CBC" => Self::Des,
            _ => return None,
        })
    }

    const fn key_bytes(self) -> usize {
        match self {
            Self::Aes128 => 16,
            Self::Aes192 | Self::TripleDes => 24,
            Self::Aes256 => 32,
            Self::Des => 8,
        }
    }

    const fn vector_bytes(self) -> usize {
        match self {
            Self::Aes128 | Self::Aes192 | Self::Aes256 => 16,
            Self::TripleDes | Self::Des => 8,
        }
    }

    /// `None`: the padding is not there, so the key is another one.
    fn open(self, key: &[u8], vector: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Aes128 => open_chained::<aes::Aes128>(key, vector, sealed),
            Self::Aes192 => open_chained::<aes::Aes192>(key, vector, sealed),
            Self::Aes256 => open_chained::<aes::Aes256>(key, vector, sealed),
            Self::TripleDes => open_chained::<des::TdesEde3>(key, vector, sealed),
            Self::Des => open_chained::<des::Des>(key, vector, sealed),
        }
    }
}

fn open_chained<C: BlockDecryptMut + BlockCipher + KeyInit>(
    key: &[u8],
    vector: &[u8],
    sealed: &[u8],
) -> Option<Vec<u8>> {
    let cipher = Decryptor::<C>::new_from_slices(key, vector).ok()?;
    let mut opened = sealed.to_vec();
    let len = cipher.decrypt_padded_mut::<Pkcs7>(&mut opened).ok()?.len();
    opened.truncate(len);
    Some(opened)
}

/// OpenSSL's `EVP_BytesToKey` with MD5 and one round: each part is the digest of the one before, the password and the salt,
/// which are the first bytes of the vector.
fn key_of(password: &[u8], vector: &[u8], len: usize) -> Vec<u8> {
    let salt = vector.get(..SALT_BYTES).unwrap_or(vector);
    let mut key: Vec<u8> = Vec::with_capacity(len + 16);
    while key.len() < len {
        let before = key.len().saturating_sub(16);
        let mut digest = Md5::new();
        digest.update(key.get(before..).unwrap_or_default());
        digest.update(password);
        digest.update(salt);
        key.extend_from_slice(&digest.finalize());
    }
    key.truncate(len);
    key
}

/// Whether it is one sequence of DER from end to end: one wrong password in 256 leaves a padding that is good.
fn is_sequence(der: &[u8]) -> bool {
    let Some(([0x30, first], rest)) = der.split_first_chunk::<2>() else {
        return false;
    };
    let (len, content) = match first {
        0x81..=0x83 => {
            let Some((len, content)) = rest.split_at_checked(usize::from(first & 0x0f)) else {
                return false;
            };
            let len = len
                .iter()
                .fold(0, |len, byte| len << 8 | usize::from(*byte));
            (len, content)
        }
        short => (usize::from(*short), rest),
    };
    len == content.len()
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits?;
    let (pairs, rest) = digits.as_chunks::<2>();
    let bytes = pairs
        .iter()
        .map(|[high, low]| u8::try_from(high << 4 | low));
    bytes
        .collect::<Result<_, _>>()
        .ok()
        .filter(|_| rest.is_empty())
}

/// The salt of an old key, in bytes (PKCS #5).
const SALT_BYTES: usize = 8;

const OLD_MARK: &str = "Proc-Type: 4,ENCRYPTED";
const PKCS8_BEGIN: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";
const PKCS8_END: &str = "-----END ENCRYPTED PRIVATE KEY-----";

#[cfg(test)]
mod tests {
    use super::{CertificateError, open};
    use std::io::Write;
    use std::process::{Command, Stdio};

    fn openssl(arguments: &[&str], input: &[u8]) -> Option<Vec<u8>> {
        let mut child = Command::new("openssl")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        child.stdin.take()?.write_all(input).ok()?;
        let output = child.wait_with_output().ok()?;
        output.status.success().then_some(output.stdout)
    }

    /// How openssl's command for such keys is called, a key in PEM, and in DER.
    type Key = (&'static str, Vec<u8>, Vec<u8>);

    fn keys() -> Option<[Key; 2]> {
        let rsa = openssl(&["genrsa", "-traditional", "2048"], b"")?;
        let ec = openssl(&["ecparam", "-genkey", "-name", "prime256v1"], b"")?;
        let rsa_der = openssl(&["rsa", "-outform", "DER", "-traditional"], &rsa)?;
        let ec_der = openssl(&["ec", "-outform", "DER"], &ec)?;
        Some([("rsa", rsa, rsa_der), ("ec", ec, ec_der)])
    }

    #[test]
    fn keys_in_the_form_before_pkcs8_are_opened_as_openssl_sealed_them() {
        let Some(keys) = keys() else {
            eprintln!("not tested: openssl is not installed");
            return;
        };
        for (command, pem, der) in keys {
            for cipher in ["-aes128", "-aes192", "-aes256", "-des3"] {
                let mut arguments = vec![command, cipher, "-passout", "pass:three words here"];
                arguments.extend((command == "rsa").then_some("-traditional"));
                let sealed = openssl(&arguments, &pem).unwrap();
                // As openssl writes them for curves: parameters come first, in clear.
                let parameters = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n";
                let sealed = format!("{parameters}{}", String::from_utf8(sealed).unwrap());
                assert!(sealed.contains("DEK-Info"), "{sealed}");
                for text in [sealed.clone(), sealed.replace('\n', "\r\n")] {
                    let words = [&b"wrong"[..], b"", b"three words here"];
                    let opened = open(&text, words).unwrap().unwrap();
                    assert_eq!(opened.secret_der(), der, "{command} {cipher}");
                }
                let refused = open(&sealed, [&b"wrong"[..]]).unwrap();
                assert!(matches!(refused, Err(CertificateError::Encrypted)));
                let refused = open(&sealed, []).unwrap();
                assert!(matches!(refused, Err(CertificateError::Encrypted)));
            }
        }
    }

    #[test]
    fn keys_in_pkcs8_are_opened_with_older_ciphers_and_digests_too() {
        let Some(keys) = keys() else {
            eprintln!("not tested: openssl is not installed");
            return;
        };
        for (_, pem, _) in keys {
            for form in [
                &["-v2", "aes-256-cbc"][..],
                &["-v2", "des3"],
                &["-v2", "aes-128-cbc", "-v2prf", "hmacWithSHA1"],
                &["-scrypt"],
            ] {
                let clear = openssl(&["pkcs8", "-topk8", "-nocrypt", "-outform", "DER"], &pem);
                let mut arguments = vec!["pkcs8", "-topk8", "-passout", "pass:word"];
                arguments.extend(form);
                let sealed = String::from_utf8(openssl(&arguments, &pem).unwrap()).unwrap();
                let opened = open(&sealed, [&b"wrong"[..], b"word"]).unwrap().unwrap();
                assert_eq!(Some(opened.secret_der().to_vec()), clear, "{form:?}");
            }
        }
    }

    #[test]
    fn broken_texts_are_refused_with_their_reason() {
        let key = |info: &str| {
            format!(
                "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n{info}\n\nAAAA\n-----END RSA PRIVATE KEY-----\n"
            )
        };
        let check = |text: &str, expected: &str| {
            let error = open(text, [&b"word"[..]]).unwrap().unwrap_err();
            assert!(error.to_string().contains(expected), "{text}: {error}");
        };
        check(&key("DEK-Info: IDEA-CBC,0011223344556677"), "IDEA-CBC");
        check(&key("DEK-Info: AES-128-CBC,0011"), "DEK-Info");
        check(&key("DEK-Info: AES-128-CBC,001122334455667"), "DEK-Info");
        check(&key("DEK-Info: AES-128-CBC"), "DEK-Info");
        check(&key("Other: 1"), "DEK-Info");
        check("Proc-Type: 4,ENCRYPTED", "DEK-Info");
        check(
            &key(&format!("DEK-Info: AES-128-CBC,{}", "0".repeat(32))),
            "no line of",
        );
        assert!(open("-----BEGIN PRIVATE KEY-----", []).is_none());
    }
}
