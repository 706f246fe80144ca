//! The length of a certificate's public key, as OpenSSL counts it.

use x509_cert::Certificate;
use x509_cert::der::asn1::{AnyRef, UintRef};
use x509_cert::der::oid::ObjectIdentifier;
use x509_cert::der::{Decode, Reader, SliceReader};

/// The bits of the key in a certificate (DER); `None`: it is not well formed, or its kind is unknown.
pub fn public_key_bits(der: &[u8]) -> Option<u32> {
    let key = Certificate::from_der(der).ok()?;
    let key = key.tbs_certificate.subject_public_key_info;
    let bytes = key.subject_public_key.as_bytes()?;
    let curve = || key.algorithm.parameters.as_ref()?.decode_as().ok();
    match key.algorithm.oid {
        RSA => modulus_bits(bytes),
        ELLIPTIC_CURVE => curve_bits(curve()?),
        ED25519 => Some(253),
        ED448 => Some(456),
        _ => None,
    }
}

/// RFC 8017 A.1.1: the modulus, and the exponent.
fn modulus_bits(bytes: &[u8]) -> Option<u32> {
    let mut reader = SliceReader::new(bytes).ok()?;
    let modulus = reader.sequence(|fields| {
        let modulus = UintRef::decode(fields)?;
        AnyRef::decode(fields)?;
        Ok(modulus)
    });
    let modulus = modulus.ok()?.as_bytes();
    let bits = u32::try_from(modulus.len()).ok()?.checked_mul(8)?;
    Some(bits - modulus.first()?.leading_zeros())
}

/// RFC 5480 2.1.1.1.
fn curve_bits(curve: ObjectIdentifier) -> Option<u32> {
    match curve {
        P256 => Some(256),
        P384 => Some(384),
        P521 => Some(521),
        _ => None,
    }
}

const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const ELLIPTIC_CURVE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");
const ED448: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.113");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");
const P521: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.35");

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{
        CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519,
    };

    #[test]
    fn keys_have_the_bits_of_their_kind() {
        for (algorithm, bits) in [
            (&PKCS_ECDSA_P256_SHA256, 256),
            (&PKCS_ECDSA_P384_SHA384, 384),
            (&PKCS_ED25519, 253),
        ] {
            let key = KeyPair::generate_for(algorithm).unwrap();
            let made = CertificateParams::default().self_signed(&key).unwrap();
            assert_eq!(public_key_bits(made.der()), Some(bits));
        }
        assert_eq!(public_key_bits(b"no certificate"), None);
    }

    #[test]
    fn the_zero_that_makes_a_modulus_positive_is_no_bit_of_it() {
        // SEQUENCE { INTEGER 0x00ff01, INTEGER 3 }
        assert_eq!(
            modulus_bits(&[0x30, 8, 2, 3, 0, 0xff, 1, 2, 1, 3]),
            Some(16)
        );
        assert_eq!(modulus_bits(&[0x30, 7, 2, 2, 0x0f, 1, 2, 1, 3]), Some(12));
        assert_eq!(modulus_bits(&[0x30, 8, 2, 3, 0]), None);
    }
}
